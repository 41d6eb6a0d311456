package serve

// descriptors returns how many files the process may have open, which is unknown here.
func descriptors() uint64 { return 0 }
