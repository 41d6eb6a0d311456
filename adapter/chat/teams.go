package chat

import (
	"strings"

	"github.com/holdfast-mq/holdfast/notify"
)

// cardVersion is the newest version that every Teams client shows (H4).
const cardVersion = "1.4"

// object is a JSON object. Its keys are sorted when it is encoded.
type object = map[string]any

// card returns a message with an Adaptive Card, in the form that the webhook trigger of Workflows
// accepts.
func card(n *notify.Notification) ([]byte, bool) {
	heading, cutTitle := cut(title(n), mostTitle, bytesOf)
	list := []object{}
	for _, f := range facts(n) {
		list = append(list, object{"title": f.Title, "value": plain(f.Value)})
	}
	body, cutBody := fit(strings.TrimSpace(clean(n.Body)), mostTeams, func(text string) []byte {
		elements := []object{{"type": "TextBlock", "text": plain(heading), "size": "large", "weight": "bolder", "wrap": true}}
		if text != "" {
			elements = append(elements, object{"type": "TextBlock", "text": plain(text), "wrap": true})
		}
		elements = append(elements, object{"type": "FactSet", "facts": list})
		return encode(object{
			"type": "message",
			"attachments": []object{{
				"contentType": "application/vnd.microsoft.card.adaptive",
				"contentUrl":  nil,
				"content": object{
					"$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
					"type":    "AdaptiveCard", "version": cardVersion,
					"body": elements, "msteams": object{"width": "full"},
				},
			}},
		})
	})
	return body, cutTitle || cutBody
}

// plain escapes text so that a card shows it unchanged. Teams reads Markdown: a name such as a_b_c
// must not turn into italics, and text must not become a link that hides its target. A line ends
// with an empty line.
func plain(s string) string {
	return strings.NewReplacer(
		`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "~", `\~`, "[", `\[`, "]", `\]`, "\n", "\n\n",
	).Replace(s)
}
