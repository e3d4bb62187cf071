"""What Cursor sends: told apart level by level, and read by the readers of the protocols it borrows from."""
