package notify

// SecretUse says what a channel uses a secret for.
type SecretUse struct {
	Secret string // its name
	Kind   string // of the channel
	Host   string // host that gets the secret, or what is made of it; empty: the host is in a secret URL that is not read yet
	URL    string // name of the secret that holds that URL, perhaps this one; empty: the settings name the host
}
