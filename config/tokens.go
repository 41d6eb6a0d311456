package config

// Access is what a store tells of who may use a node.
type Access struct {
	Admins  int  // tokens with the role admin
	Sites   int  // enrolled, and not revoked
	Waiting bool // something is to be delivered
}

// AsksForTokens says whether requests need a token.
func (c *Config) AsksForTokens() bool {
	return c.Tokens == TokensAlways || c.Tokens != TokensNever && c.remote()
}

// NoAdmin says what is wrong where a node asks for tokens and none has the role
// admin, and whether it starts all the same: it does where sites and peers are
// served, who prove themselves otherwise, or something waits to be delivered.
// Empty: nothing is wrong.
func (c *Config) NoAdmin(a Access) (what string, starts bool) {
	if !c.AsksForTokens() || a.Admins > 0 {
		return "", true
	}
	if c.Role == CentralOfSites && a.Sites > 0 || len(c.Receive.Sources) > 0 || a.Waiting {
		return "requests need a token, and there is none with the role admin: sites and peers are served, and nobody can operate the node", true
	}
	return "requests need a token, and there is none with the role admin, so nobody could be let in, and a node does not start", false
}

// FirstToken says how a token with the role admin is made on this machine.
func (c *Config) FirstToken() string {
	const command = "holdfast tokens create NAME --role admin "
	if c.Store.IsZero() {
		return "while no node runs, make one with: " + command + "--data " + c.Data
	}
	return "make one with: " + command + "--config FILE"
}
