package chat

import (
	"strings"

	"github.com/holdfast-mq/holdfast/notify"
)

// blocks is the message of an incoming webhook of Slack. "text" is what phones
// show in their list.
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

// marked is text in Slack's markup that names nobody and links nothing by
// itself: "@channel" in it calls nobody.
func marked(s string) object {
	return object{"type": "mrkdwn", "text": escape(s), "verbatim": true}
}

// escape writes the three characters that Slack's markup is made of.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// escapedUnits is what a character costs once it is escaped.
func escapedUnits(r rune) int {
	switch r {
	case '&':
		return len("&amp;")
	case '<', '>':
		return len("&lt;")
	}
	return unitsOf(r)
}
