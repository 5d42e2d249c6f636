"""What the data is: field tables of the service and everything derived from them. Pure."""
