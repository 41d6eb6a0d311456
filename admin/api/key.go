package api

// Key is a key that secrets in the database are sealed with.
type Key struct {
	ID     string `json:"id" doc:"Its name, which tells nothing of it: 12 hexadecimal digits." example:"3d8b42579421"`
	State  string `json:"state" enum:"newest,former,missing" doc:"newest: it seals; former: it only opens; missing: values need it, and the node does not have it."`
	Values int    `json:"values" doc:"Secrets that are sealed with it."`
}

// KeyList is the state of the sealed secrets.
type KeyList struct {
	Keys     []Key        `json:"keys" nullable:"false"`
	Broken   int          `json:"broken" doc:"Secrets that do not open."`
	Problems []KeyProblem `json:"problems,omitempty" nullable:"false" doc:"The first hundred of them."`
}

// KeyProblem is a sealed secret that does not open.
type KeyProblem struct {
	Where string `json:"where" doc:"The table, and the row in it." example:"channel/mail"`
	Why   string `json:"why"`
}

// KeyRotation is one page of a rotation.
type KeyRotation struct {
	Looked   int          `json:"looked" doc:"Secrets that this page has looked at."`
	Resealed int          `json:"resealed" doc:"Those of them that it has sealed anew."`
	Next     string       `json:"next,omitempty" doc:"Where to go on, as after of the next request. Absent: all were looked at."`
	Problems []KeyProblem `json:"problems,omitempty" nullable:"false" doc:"Those that do not open. They are left as they are."`
}
