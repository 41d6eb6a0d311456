package serve

// descriptors is how many files the process may have open: nobody says.
func descriptors() uint64 { return 0 }
