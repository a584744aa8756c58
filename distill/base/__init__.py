"""What every command needs: settings as flags, one-line errors, progress, whole files, folders, versions."""
