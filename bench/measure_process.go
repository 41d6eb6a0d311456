package main

import "fmt"

// batchSize is how many messages one ProcessBatch has.
const batchSize = 64

// processMeasure: senders pass messages to the inbox, whose handler inserts one row; each sender
// waits for its own durable answer.
func processMeasure(z sizes, senders int, batch bool) measure {
	m := measure{name: fmt.Sprintf("process/%d", senders), columns: []column{{key: "rate", unit: "msg/s"}}}
	worth := 1
	if batch {
		m.name, worth = fmt.Sprintf("process batches/%d", senders), batchSize
	}
	for _, l := range []load{ourProcess(worth, true), ourProcess(worth, false), processByHand(worth), bareProcess(worth)} {
		m.addLoad(z, senders, worth, l)
	}
	return m
}
