"""The fold of classic groups over columns: a bucket's GroupMetadata records in, Arrow columns of the tables out."""
