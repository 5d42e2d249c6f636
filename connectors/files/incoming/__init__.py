"""Files on their way in: what is named or found, complete, unpacked, and stated of them."""
