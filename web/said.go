package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
)

// saidCookie goes with the answer to a form, to the page that it leads to. Without it, a link could make a page
// claim what nobody has done.
const saidCookie = "holdfast-said"

// saidFor is how long the browser may take to follow, in seconds.
const saidFor = 60

// announce lets the page at a path of ours tell once what came of the form that this request has sent.
func (p *Pages) announce(w http.ResponseWriter, r *http.Request, to string) {
	if at, err := url.Parse(to); err == nil && at.Query().Has("done") {
		http.SetCookie(w, p.saying(r, signOf(at.Path, at.Query()), saidFor))
	}
}

// announced returns what the page that is asked for is to tell, and sees to it that it tells that once.
func (p *Pages) announced(w http.ResponseWriter, r *http.Request) *notice {
	q := r.URL.Query()
	if !q.Has("done") {
		return nil
	}
	c, err := r.Cookie(saidCookie)
	if err != nil || c.Value != signOf(p.Base+r.URL.Path, q) {
		return nil
	}
	http.SetCookie(w, p.saying(r, "", -1))
	return said(q)
}

func (p *Pages) saying(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // over plain HTTP the browser would not send a secure one back
		Name: saidCookie, Value: value, Path: p.Base + Root, MaxAge: seconds, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	}
}

// signOf names a page with what it is to tell.
func signOf(path string, q url.Values) string {
	sum := sha256.Sum256([]byte(path + "?" + q.Encode()))
	return base64.RawURLEncoding.EncodeToString(sum[:])
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
