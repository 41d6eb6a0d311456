package chat

import (
	"strings"

	"github.com/holdfast-mq/holdfast/notify"
)

// publication returns a message in the form of ntfy; it is posted to the root of the server.
func (p *Poster) publication(n *notify.Notification, topic string) ([]byte, bool) {
	heading, cutTitle := cut(title(n), mostTitle, bytesOf)
	text, cutText := message(n, mostNtfy)
	return encode(struct {
		Topic    string   `json:"topic"`
		Title    string   `json:"title"`
		Message  string   `json:"message"`
		Priority *int     `json:"priority,omitempty"`
		Tags     []string `json:"tags,omitempty"`
	}{topic, heading, text, p.settings.priority, p.settings.tags}), cutTitle || cutText
}

// gotify returns a message in the form of Gotify.
func (p *Poster) gotify(n *notify.Notification) ([]byte, bool) {
	heading, cutTitle := cut(title(n), mostTitle, bytesOf)
	text, cutText := message(n, mostGotify)
	return encode(struct {
		Title    string `json:"title"`
		Message  string `json:"message"`
		Priority *int   `json:"priority,omitempty"`
		Extras   object `json:"extras"`
	}{heading, text, p.settings.priority, object{"client::display": object{"contentType": "text/plain"}}}), cutTitle || cutText
}

// message returns the text, and a line below it that says where it comes from.
func message(n *notify.Notification, most int) (string, bool) {
	var from []string
	for _, f := range facts(n) {
		from = append(from, f.Value)
	}
	below := strings.Join(from, " · ")
	text := strings.TrimSpace(clean(n.Body))
	if text == "" {
		return below, false
	}
	below = "\n\n" + below
	text, truncated := cut(text, most-len(below), bytesOf)
	return text + below, truncated
}
