"""What a position is: rules and encodings. Imports no other room."""
