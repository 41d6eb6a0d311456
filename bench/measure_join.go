package main

import "fmt"

// joinMeasure: callers insert one row of their own and one message in one
// transaction, each waiting for its own durable answer.
func joinMeasure(z sizes, callers int) measure {
	m := measure{name: fmt.Sprintf("join/%d", callers), columns: []column{{key: "rate", unit: "tx/s"}}}
	for _, l := range []load{
		ourIn(modernc()), ourDo(modernc()), ourOwnDo(), ourPlain(),
		joining(goqiteRaw()), joining(backliteDefault()), joining(backliteTuned()), joining(riverDefault()),
		joinByHand(modernc(), rolePeer), bareJoin(),
	} {
		m.addLoad(z, callers, 1, l)
	}
	return m
}

// joinMattnMeasure is the same through the C driver. No peer is measured with it; its ceiling is
// the code by hand.
func joinMattnMeasure(z sizes, callers int) measure {
	m := measure{name: fmt.Sprintf("join mattn/%d", callers), columns: []column{{key: "rate", unit: "tx/s"}}}
	for _, l := range []load{ourIn(mattn()), ourDo(mattn()), joinByHand(mattn(), roleBare)} {
		m.addLoad(z, callers, 1, l)
	}
	return m
}
