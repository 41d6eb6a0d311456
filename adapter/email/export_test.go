package email

// Local is the part of a Message-ID before the @.
func Local(id string) string { return local(id) }
