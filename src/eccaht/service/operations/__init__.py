"""What keeps a service going: copies and backups of its store, and a look at everything before it starts."""
