package notify

// SecretUse is what a channel uses a secret for.
type SecretUse struct {
	Secret string // its name
	Kind   string // of the channel
	Host   string // that gets it, or what is made of it; empty: it stands in a URL that is a secret and not read yet
	URL    string // the name of the secret that holds that URL, perhaps this very one; empty: the settings name the host
}
