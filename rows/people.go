package rows

// Person is somebody who signs in.
type Person struct {
	Name     string  `row:"name,key,book"`
	Display  string  `row:"display"`
	Role     string  `row:"role"`     // or rights and scope, as the API writes them
	Password string  `row:"password"` // its hash, with the parameters; empty: there is none
	Subject  string  `row:"subject"`  // issuer and subject at the provider; empty: there is none
	TOTP     string  `row:"totp"`     // the sealed secret; empty: there is none
	Step     int64   `row:"step"`     // of the last code that was taken
	Codes    string  `row:"codes"`    // hashes of the recovery codes that are left
	Created  Instant `row:"created"`
	Changed  Instant `row:"changed"`
	SignedIn Instant `row:"signed_in,null"`
	Disabled Instant `row:"disabled,null"` // since then; a value that is lost was long ago
}

// Session is a person who has signed in.
type Session struct {
	ID      string  `row:"id,key"`
	Person  string  `row:"person"`
	Hash    []byte  `row:"hash,secret"`
	Via     string  `row:"via"`     // how the person signed in
	Sender  string  `row:"sender"`  // address from which that came
	Pending bool    `row:"pending"` // the second factor is still to come
	Idle    int64   `row:"idle"`    // microseconds that it lives without a request
	Created Instant `row:"created"`
	Seen    Instant `row:"seen"`
	Until   Instant `row:"until"`
}

// Table implements Row.
func (*Person) Table() string { return "hf_person" }

// Table implements Row.
func (*Session) Table() string { return "hf_session" }
