package main

import (
	"context"
	"strings"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Common values of all notifications of the measures.
const (
	noticeSize    = 1 << 10 // bytes of the payload
	noticeType    = "batch.failed"
	noticeList    = "operators"
	noticeSubject = "Batch 7 failed at filler 3"
)

var noticeBody = strings.Repeat("The filler has stopped, and the tank is full. ", 30)[:noticeSize-92]

// notice returns a notification as a site enqueues it, of noticeSize bytes.
func notice(id hf.ID, siteName string) (hf.Message, error) { return noticeTo(noticeList, id, siteName) }

func noticeTo(list string, id hf.ID, siteName string) (hf.Message, error) {
	n := notify.Notification{
		ID: id, Type: noticeType, List: list, Subject: noticeSubject, Body: noticeBody,
		Origin: notify.Origin{Site: siteName, Instance: "filler-3", Script: "watch", Enqueued: time.Now()},
	}
	text, err := notify.Encode(n)
	return hf.Message{
		ID: id, Source: siteName, Destination: notify.Central, Endpoint: notify.Endpoint, Payload: text, Headers: n.Origin.Headers(),
	}, err
}

// fillNotices makes a site's backlog.
func fillNotices(dir string, count int) error {
	ctx := context.Background()
	db, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	defer db.Close()
	return inChunks(count, func(from, to int) error {
		ms := make([]hf.Message, to-from)
		for i := range ms {
			if ms[i], err = notice(hf.NewID(), siteName(0)); err != nil {
				return err
			}
		}
		_, err := db.Enqueue(ctx, ms...)
		return err
	})
}
