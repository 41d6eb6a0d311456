package web

import (
	"net/url"

	"github.com/holdfast-mq/holdfast/admin"
)

// messageFilter is what a list of messages is searched for.
func messageFilter(q url.Values) admin.MessageFilter {
	return admin.MessageFilter{
		ID: q.Get("id"), Endpoint: q.Get("endpoint"), Key: q.Get("key"), Correlation: q.Get("correlation"),
		From: q.Get("from"), To: q.Get("to"), Code: q.Get("code"), Error: q.Get("error"), Grep: q.Get("grep"), Cause: q.Get("cause"),
	}
}

// narrowed reports whether the parameters of a list narrow it.
func narrowed(q url.Values) bool {
	for name, values := range q {
		if name != "after" && name != "limit" && len(values) > 0 && values[0] != "" {
			return true
		}
	}
	return false
}
