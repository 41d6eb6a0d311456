package api

import "time"

// Follower is a program, or a part of the node, that reads the journal.
type Follower struct {
	Name    string     `json:"name" example:"reports"`
	Running bool       `json:"running" doc:"It runs in this process. One that runs in another process is not known to."`
	Unread  *time.Time `json:"unread,omitempty" doc:"When the first entry that it has yet to read was written. Absent: it has read all."`
}

// FollowerList holds all followers of the journal, by name.
type FollowerList struct {
	Followers []Follower `json:"followers" nullable:"false"`
}
