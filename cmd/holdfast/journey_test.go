package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// TestJourney lets two sites send to people, to a program and to two databases
// while central, the mail server and the program are away, break or say
// nothing. Everything arrives once or is parked with its reason, what is parked
// arrives when a person retries it, and the counts are the same at every place
// (SF-01, SF-02, SF-03, SF-19, NO-01, NO-06, NO-17, NO-20).
func TestJourney(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	parts := j.plan(4)
	j.during(parts[0], func() {}, func() bool { return true }, func() {})
	j.during(parts[1], func() {
		if err := j.central.end(); err != nil {
			t.Errorf("stop central: %v\n%s", err, j.central.tail())
		}
		j.target.feel(broken)
	}, func() bool {
		return j.target.seen[broken].Load() > 0 && j.waits("plant-1") && j.waits("plant-2")
	}, func() {
		j.target.feel(well)
		j.central.running()
	})
	j.during(parts[2], func() {
		j.mail.Stop()
		j.target.feel(silent)
	}, func() bool {
		page, err := j.clients[people].Notifications().List(t.Context(), client.NotificationQuery{Statuses: []string{"retrying"}})
		return err == nil && len(page.Notifications) > 0 && j.target.seen[silent].Load() > 0
	}, func() {
		j.target.feel(well)
		j.mail.Start()
	})
	j.during(parts[3], func() { j.target.feel(broken) }, func() bool { return j.target.seen[refusing].Load() > 0 }, func() { j.target.feel(well) })
	j.agree(true)
	j.mend()
	j.agree(false)
	for _, p := range []*child{j.sites["plant-1"], j.sites["plant-2"], j.central} {
		if err := p.end(); err != nil {
			t.Errorf("stop: %v\n%s", err, p.tail())
		}
	}
}

// plan is what is sent, in parts that follow each other.
func (j *journey) plan(parts int) [][]parcel {
	list := make([][]parcel, parts)
	for i := range 60 {
		for site := range j.sites {
			for to, n := range map[string]int{people: 60, mes: 60, postgres: 40, mariadb: 40, press: 1} {
				if i >= n {
					continue
				}
				p := parcel{site: site, to: to, id: fmt.Sprintf("%s-%s-%d", site, to, i)}
				switch {
				case to == mes && i%10 == 3, to == people && i%30 == 7:
					p.parks = "permanent"
				case to == press:
					p.parks = "exhausted"
				}
				list[i%parts] = append(list[i%parts], p)
			}
		}
	}
	return list
}

// during sends a part, in the middle of which an outage begins, and ends that
// when it was seen.
func (j *journey) during(part []parcel, begin func(), seen func() bool, end func()) {
	j.t.Helper()
	third := len(part) / 3
	j.sendAll(part[:third])
	var meanwhile sync.WaitGroup
	meanwhile.Go(func() { j.sendAll(part[third : 2*third]) })
	begin()
	meanwhile.Wait()
	j.sendAll(part[2*third:])
	eventually(j.t, "an outage is noticed", seen)
	end()
}

func (j *journey) sendAll(list []parcel) {
	var all sync.WaitGroup
	defer all.Wait()
	for w := range 8 {
		all.Go(func() {
			for i := w; i < len(list); i += 8 {
				j.send(j.t.Context(), list[i], i)
			}
		})
	}
}

// waits tells whether notifications of a site cannot go on.
func (j *journey) waits(site string) bool {
	page, err := j.clients[site].Messages().List(j.t.Context(), client.MessageQuery{Destination: people, States: []string{"pending"}, Limit: 1})
	return err == nil && len(page.Messages) > 0
}

// mend takes away what was in the way, and retries through central all that is
// parked.
func (j *journey) mend() {
	j.t.Helper()
	j.target.refuse(false)
	for site := range j.sites {
		ids := strings.Fields(succeeds(j.t, "sites", "parked", site, "--all", "-q", "--url", j.central.url()))
		succeeds(j.t, append([]string{"sites", "retry", site, "--url", j.central.url()}, ids...)...)
	}
	if _, err := j.clients[people].Lists().Put(j.t.Context(), "gone", api.ListSpec{Recipients: []api.Recipient{{Channel: "mail", Address: "jane@plant.test"}}}); err != nil {
		j.t.Fatal(err)
	}
	ids := strings.Fields(succeeds(j.t, "notifications", "ls", "--status", "parked", "--all", "-q", "--url", j.central.url()))
	succeeds(j.t, append([]string{"notifications", "retry", "--url", j.central.url()}, ids...)...)
}
