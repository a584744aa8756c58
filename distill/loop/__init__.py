"""What comes back: the parts of self-play's loop, which asks every room to its left; `distill.selfplay` runs them."""
