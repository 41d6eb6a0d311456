package web

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Refuse shows a refusal of the gate. A person who is not signed in is led to the sign-in; a program that sent a token is not.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, why *api.Problem) {
	secure(w.Header())
	if why.Status == http.StatusUnauthorized && p.People != nil && r.Header.Get("Authorization") == "" {
		p.toSignIn(w, r)
		return
	}
	maps.Copy(w.Header(), why.GetHeaders())
	v := p.problemView(r, why)
	v.bare = why.Type != api.RoleLacking.Problem("").Type // otherwise the gate may not know yet who asks
	v.send(p, w, r)
}

// problemView is the page of a refusal or a fault.
func (p *Pages) problemView(r *http.Request, why *api.Problem) *view {
	v := &view{status: why.Status, template: "problem", title: why.Title, data: problem{Problem: why, Back: p.link()}}
	if r.Method == http.MethodPost {
		v.data = problem{Problem: why, Back: p.here(r)}
	}
	return v
}

type problem struct {
	*api.Problem

	Back string
}

// unknown answers for a path that is no page.
func unknown(*http.Request) (answer, error) {
	p := api.NotFound.Problem("it may have been moved, or the address is mistyped")
	p.Title = "there is no such page"
	return nil, p
}

// refused tells on the page itself what was not done.
func refused(err error) *notice {
	return &notice{Tone: "bad", Title: "Not done", Text: upper(problemOf(err).Detail) + "."}
}

// said returns what came of the form that led here. Its words are ours: nobody can put others into a link.
func said(q url.Values) *notice {
	text, known := map[string]string{
		"retried": "It is due at once, in a new cycle.", "discarded": "It is not tried any more. Its row is kept, and a retry takes it up again.",
		"run": "It is due at once.", "rescheduled": "It is tried at the new time.", "paused": "Nothing more is begun there until somebody resumes it.",
		"resumed": "It goes on at once.", "begun": "The node does it row by row, also when nobody looks.", "cancelled": "Rows that were not done stay as they are.",
		"saved": "It counts from the next notification on.", "deleted": "It is gone from this node.",
		"verifying": "All records are read. This page shows the result when that is done.", "sent": "Each subscription gets the event again.",
		"removed": "It is not accepted any more.", "revoked": "The site is shut out.", "disabled": "It gets nothing until somebody resumes it.",
		"set": "It counts from now on.", "sealed": "Every secret that could be opened has the newest key.", "sealing": "Many were sealed, and some are left: do it again to go on.",
		"signed-out": "Your session has ended.",
		"password":   "Other sessions have ended.", "ended": "Who used it signs in again.", "added": "The person can sign in.",
		"granted": "It counts at once, also in sessions.", "barred": "Their sessions have ended, and nobody signs in by that name.", "enabled": "The person can sign in again.",
	}[q.Get("done")]
	if !known {
		return nil
	}
	n := &notice{Tone: "good", Title: map[string]string{"run": "Due now", "signed-out": "Signed out", "password": "Password changed", "granted": "Role changed"}[q.Get("done")], Text: text}
	if n.Title == "" {
		n.Title = upper(q.Get("done"))
	}
	if rows, err := strconv.Atoi(q.Get("rows")); err == nil {
		n.Text = "Rows changed: " + grouped(int64(rows)) + "."
		if skipped, err := strconv.Atoi(q.Get("skipped")); err == nil && skipped > 0 {
			n.Tone, n.Text = "warn", n.Text+" Skipped, because their state had changed or did not allow it: "+grouped(int64(skipped))+"."
		}
	}
	return n
}
