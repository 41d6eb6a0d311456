package api

import "time"

// List names who gets a notification.
type List struct {
	Name        string      `json:"name,omitempty" doc:"1 to 64 letters, digits, dots, hyphens or underscores; notifications name it." example:"operators"`
	Description string      `json:"description,omitempty" maxLength:"1024" doc:"For people, in one line."`
	Partial     bool        `json:"partial,omitempty" doc:"If some recipients refuse a notification for good and at least one accepts it, it is delivered, with a mark. Otherwise it parks."`
	Recipients  []Recipient `json:"recipients" nullable:"false" maxItems:"10000" doc:"Each address once on each channel."`
	Version     string      `json:"version,omitempty" doc:"The version of the settings. If you send it and it is not the present version, nothing is changed."`
	Changed     *time.Time  `json:"changed,omitempty" doc:"When it was last changed. Ignored in requests."`
	Warnings    []string    `json:"warnings,omitempty" nullable:"false" doc:"Why somebody on it is not reached. Ignored in requests."`
}

// ListSpec is what PUT /v1/lists/{name} takes. It is a List, so that a client can send back what it was shown.
type ListSpec List

// Recipient is one address on a channel.
type Recipient struct {
	Channel  string `json:"channel" doc:"How it is reached: one of GET /v1/channels." example:"mail"`
	Address  string `json:"address,omitempty" maxLength:"512" doc:"In the form that the channel reads: a mail address, a topic. Absent if the channel has one target." example:"jane@example.com"`
	Name     string `json:"name,omitempty" maxLength:"256" doc:"For people." example:"Doe, Jane"`
	Disabled bool   `json:"disabled,omitempty" doc:"It is on the list but gets nothing."`
}

// RecipientSpec is what PUT /v1/lists/{name}/recipients takes.
type RecipientSpec Recipient

// ListSummary is a list without its recipients.
type ListSummary struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Partial     bool       `json:"partial,omitempty"`
	Recipients  int        `json:"recipients" doc:"Number of recipients."`
	Disabled    int        `json:"disabled,omitempty" doc:"Number of recipients that get nothing."`
	Channels    []string   `json:"channels" nullable:"false" doc:"The channels of its recipients."`
	Version     string     `json:"version"`
	Changed     *time.Time `json:"changed,omitempty"`
	Warnings    []string   `json:"warnings,omitempty" nullable:"false" doc:"Why somebody on it is not reached."`
}

// Lists holds all lists, by name.
type Lists struct {
	Lists []ListSummary `json:"lists" nullable:"false"`
}

// ListChange is the answer to a change of a list's recipients.
type ListChange struct {
	List       string   `json:"list"`
	Added      int      `json:"added"`
	Changed    int      `json:"changed" doc:"Were there with another name or another value of disabled."`
	Unchanged  int      `json:"unchanged" doc:"Were there already."`
	Removed    int      `json:"removed"`
	Recipients int      `json:"recipients" doc:"Number of recipients now."`
	Version    string   `json:"version"`
	Warnings   []string `json:"warnings,omitempty" nullable:"false" doc:"Why somebody on it is not reached."`
}

// ImportRequest is what POST /v1/lists/{name}/recipients/import takes.
type ImportRequest struct {
	Channel string `json:"channel,omitempty" doc:"The channel of recipients for which the text names none." example:"mail"`
	Format  string `json:"format,omitempty" enum:"lines,csv" doc:"lines: one recipient a line, an address or a name with the address in angle brackets; csv: with a first row that names the columns address, name, channel, disabled. Absent: lines."`
	Text    string `json:"text" doc:"The recipients. Either all are added, or none." example:"\"Doe, Jane\" <jane@example.com>"`
}
