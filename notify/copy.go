package notify

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast"
)

// Lane is the destination of a channel's messages. Without a channel it is
// where notifications wait whose list led nowhere.
func Lane(channel string) string { return LanePrefix + channel }

// ChannelOf is the channel of a lane.
func ChannelOf(lane string) (channel string, ok bool) { return strings.CutPrefix(lane, LanePrefix) }

// What a copy's message says of itself, in headers.
const (
	headerNotification = "hf-notification" // the notification's id, where it is not the message's
	headerCopies       = "hf-copies"       // channels of all copies, with commas between
)

// copies makes the messages of one notification: one for each channel that its
// list uses, in the order of their names, each in the lane of its channel.
func copies(m *holdfast.Message, n *Notification, book *Book) (messages []holdfast.Message, channels []string) {
	channels = channelsOf(n.List, book)
	if len(channels) == 0 {
		channels = []string{""} // it parks with the reason, or finds its list at the first attempt
	}
	for i, channel := range channels {
		c := holdfast.Message{
			ID: n.ID, Source: n.Origin.Site, Destination: Lane(channel), Endpoint: n.List, Kind: holdfast.Signal,
			CorrelationID: m.CorrelationID, Payload: m.Payload, Headers: n.Origin.Headers(),
		}
		if len(channels) > 1 {
			c.Headers[headerCopies] = strings.Join(channels, ",")
		}
		if i > 0 {
			c.ID = copyID(n.ID, channel)
			c.Headers[headerNotification] = string(n.ID)
		}
		messages = append(messages, c)
	}
	return messages, channels
}

// copyID is the id of a further copy's message: always the same one.
func copyID(id holdfast.ID, channel string) holdfast.ID {
	c := id + "." + holdfast.ID(channel)
	if len(c) > holdfast.MaxIDLen {
		return holdfast.IDOf(uuid.NewSHA1(uuid.Nil, []byte(c)))
	}
	return c
}

// channelsOf are those that a list's recipients are on.
func channelsOf(list string, book *Book) []string {
	var names []string
	for _, r := range book.Lists[list].Recipients {
		if _, ok := book.Channels[r.Channel]; ok && !r.Disabled {
			names = append(names, r.Channel)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// covers says whether a copy is the one that reaches the recipients of a
// channel. What no copy was made for, because the list has changed since, is
// the first copy's.
func covers(m *holdfast.Message, channel string) bool {
	own, _ := ChannelOf(m.Destination)
	if channel == own {
		return true
	}
	if m.Headers[headerNotification] != "" {
		return false
	}
	return !slices.Contains(strings.Split(m.Headers[headerCopies], ","), channel)
}

// notificationID is whose copy a message is.
func notificationID(m *holdfast.Message) holdfast.ID {
	if id := m.Headers[headerNotification]; id != "" {
		return holdfast.ID(id)
	}
	return m.ID
}
