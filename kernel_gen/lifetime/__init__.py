"""What ends with its owner, however that ends: temporary folders and child processes."""
