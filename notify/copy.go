package notify

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Lane returns the destination of a channel's messages. With an empty channel it is the lane for
// notifications whose list has no channel.
func Lane(channel string) string { return LanePrefix + channel }

// ChannelOf returns the channel of a lane.
func ChannelOf(lane string) (channel string, ok bool) { return strings.CutPrefix(lane, LanePrefix) }

// CopyOf returns the id of the notification of which a message with these headers is a copy, or "",
// and whether it is the first copy.
func CopyOf(destination string, headers map[string]string) (id holdfast.ID, first bool) {
	id, err := holdfast.ParseID(headers[headerNotification])
	if err != nil {
		return "", false
	}
	channel, _ := ChannelOf(destination)
	lead, _, _ := strings.Cut(headers[headerCopies], ",")
	return id, lead == "" || lead == channel
}

// Headers of a copy's message.
const (
	headerNotification = "hf-notification" // id of the notification
	headerCopies       = "hf-copies"       // channels of all copies, separated by commas, the first copy's first; absent: there is one copy
)

// bundle makes the bundle of a notification, with one message for each channel of its list, sorted
// by channel, each in its channel's lane.
func bundle(m *holdfast.Message, n *Notification, book *Directory) holdfast.Bundle {
	channels := channelsOf(n.List, book)
	if len(channels) == 0 {
		channels = []string{""} // the message parks with the reason, or finds its list at the first attempt
	}
	messages := make([]holdfast.Message, len(channels))
	for i, channel := range channels {
		c := &messages[i]
		*c = holdfast.Message{
			Source: n.Origin.Site, Destination: Lane(channel), Endpoint: n.List, Kind: holdfast.Signal, CorrelationID: m.CorrelationID, Headers: n.Origin.Headers(),
		}
		c.Headers[headerNotification] = string(n.ID)
		if len(channels) > 1 {
			c.Headers[headerCopies] = strings.Join(channels, ",")
		}
		if i == 0 {
			c.ID = n.Key()
		} else {
			c.ID = MessageID(n.Origin.Site, n.ID, channel)
		}
	}
	return BundleOf(n, [32]byte(m.ContentHash()), m.Payload, messages, channels)
}

// BundleKind is the Kind of the bundle of a notification.
const BundleKind = "notification"

// BundleOf makes the bundle of a notification. The hash is of the content that may not change under
// its name; the payload holds the text; messages are those of channels, in order. The first
// message's id must be the notification's Key, and the source of all its site.
func BundleOf(n *Notification, hash [32]byte, payload []byte, messages []holdfast.Message, channels []string) holdfast.Bundle {
	b := holdfast.Bundle{Kind: BundleKind, Source: n.Origin.Site, ID: n.ID, Hash: hash, Payload: payload, Messages: messages}
	o, enqueued := &n.Origin, int64(rows.None)
	if !o.Enqueued.IsZero() {
		enqueued = o.Enqueued.UnixMicro()
	}
	for i, channel := range channels {
		r := &rows.Notification{
			ID: n.ID, Copy: int64(i), Channel: channel, Type: n.Type, List: n.List, Subject: n.Subject,
			Site: o.Site, Instance: o.Instance, Script: o.Script, Execution: o.Execution, Parent: o.ParentExecution, Enqueued: enqueued, Created: rows.Now,
		}
		if i > 0 {
			r.Message = messages[i].ID
		}
		b.Rows = append(b.Rows, r)
	}
	return b
}

// Key identifies a notification among those of all sites, since two sites may use the same id. It
// is the id of the first copy's message.
func (n *Notification) Key() holdfast.ID { return MessageID(n.Origin.Site, n.ID, "") }

// MessageID returns the id of a copy's message. It is derived from the site, the notification's id
// in canonical form, and the channel, which the first copy leaves out. It is a UUID of version 8.
// If the notification's id is of version 7, the result has its time, so that index entries are in
// order of arrival.
func MessageID(site string, id holdfast.ID, channel string) holdfast.ID {
	var text []byte
	for _, s := range []string{site, string(id), channel} {
		text = append(binary.BigEndian.AppendUint32(text, uint32(len(s))), s...)
	}
	sum := sha256.Sum256(text)
	u := uuid.UUID(sum[:16])
	if from, err := uuid.Parse(string(id)); err == nil && from.Version() == 7 {
		copy(u[:6], from[:6])
	}
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return holdfast.IDOf(u)
}

// channelsOf returns the channels of a list's recipients.
func channelsOf(list string, book *Directory) []string {
	var names []string
	for _, r := range book.Lists[list].Recipients {
		if _, ok := book.Channels[r.Channel]; ok && !r.Disabled {
			names = append(names, r.Channel)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// notificationID returns the id of the notification of which m is a copy.
func notificationID(m *holdfast.Message) holdfast.ID {
	if id := m.Headers[headerNotification]; id != "" {
		return holdfast.ID(id)
	}
	return m.ID
}
