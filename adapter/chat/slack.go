package chat

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/notify"
)

// blocks returns the message for an incoming webhook of Slack. Phones show "text" in their list.
func blocks(n *notify.Notification) ([]byte, bool) {
	heading, cutTitle := cut(title(n), mostHeader, unitsOf)
	text, cutText := cut(strings.TrimSpace(clean(n.Body)), mostSection, escapedUnits)
	list := []object{{"type": "header", "text": object{"type": "plain_text", "text": heading}}}
	if text != "" {
		list = append(list, object{"type": "section", "text": marked(text)})
	}
	var from []string
	for _, f := range facts(n) {
		from = append(from, f.Value)
	}
	about, _ := cut(strings.Join(from, " · "), mostSection, escapedUnits)
	list = append(list, object{"type": "context", "elements": []object{marked(about)}})
	return encode(object{"text": escape(heading), "blocks": list}), cutTitle || cutText
}

// marked returns text in Slack's markup. It mentions nobody and makes no links: "@channel" in it
// notifies nobody.
func marked(s string) object {
	return object{"type": "mrkdwn", "text": escape(s), "verbatim": true}
}

// escape escapes the three special characters of Slack's markup.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// escapedUnits is the length of a character after escaping.
func escapedUnits(r rune) int {
	switch r {
	case '&':
		return len("&amp;")
	case '<', '>':
		return len("&lt;")
	}
	return unitsOf(r)
}

// slackFailure returns nil if Slack says ok. An incoming webhook says so in plain text; what stands
// before it answers in JSON. Any other answer with status 200 is a failure (H6).
func slackFailure(a *answer) *holdfast.Failure {
	if strings.TrimSpace(string(a.body)) == "ok" {
		return nil
	}
	var said struct {
		OK    *bool  `json:"ok"`
		Error string `json:"error"`
	}
	if json.Unmarshal(a.body, &said) != nil || said.OK == nil {
		return &holdfast.Failure{Code: "unexpected_answer", MaybeDelivered: true}
	}
	if *said.OK {
		return nil
	}
	f := &holdfast.Failure{Code: "slack_error"}
	switch said.Error {
	case "ratelimited", "rate_limited":
		f.Outcome, f.RetryAfter = holdfast.Unreachable, retryafter.Of(a.header)
	case "invalid_payload", "invalid_blocks", "invalid_blocks_format", "msg_too_long", "no_text":
		f.Outcome = holdfast.Permanent
	case "channel_not_found", "channel_is_archived", "is_archived", "no_service", "no_service_id", "no_team", "team_disabled",
		"invalid_auth", "invalid_token", "not_authed", "token_revoked", "token_expired", "account_inactive", "action_prohibited":
		f.Outcome = holdfast.LaneFault
	}
	return f
}
