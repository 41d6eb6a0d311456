package config

import (
	"time"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Webhooks says how a node delivers events to subscribers.
type Webhooks struct {
	Seed      string        // file of topics and subscriptions to make if they do not exist; empty: no file
	Retention time.Duration // of events
	Addresses []string      // that may be reached; empty: public ones
	Proxy     string        // URL of a forward proxy; empty: none
	NoProxy   string        // hosts that are reached without it
	Backoff   string        // exponential, plain or off (WH-08)
	Factor    time.Duration // this and the next three are the schedule (WH-03, WH-04)
	Base      float64
	Cap       time.Duration
	Retries   int

	DisableAfter time.Duration // without success while attempts fail; Never: nothing is disabled
	Notices      string        // list of people who are told; empty: nobody is
}

func webhookKeys() setting.Section[Webhooks] {
	wait := setting.Period(time.Second, 365*setting.Day)
	return setting.Section[Webhooks]{
		setting.Maybe("seed", func(w *Webhooks) *string { return &w.Seed }, setting.File("webhooks.yaml"),
			"File with topics and subscriptions that are made at the start if they do not exist. Existing ones are left as they are."),
		setting.Key("retention", func(w *Webhooks) *time.Duration { return &w.Retention }, setting.Period(time.Hour, setting.MaxTime), 30*setting.Day,
			"How long an event is kept, and can be explained. It stays until its messages are purged, too."),
		setting.Addresses(func(w *Webhooks) *[]string { return &w.Addresses },
			"Addresses where subscribers may be. Name networks of your own beside `public`: all others that are not public are refused.", "`public`"),
		setting.Maybe("proxy", func(w *Webhooks) *string { return &w.Proxy }, setting.Words("http://proxy.example:3128", func(r *setting.Report, path, text string) { r.CheckURL(path, text, false) }),
			"Forward proxy over which subscribers are called."),
		setting.Maybe("noProxy", func(w *Webhooks) *string { return &w.NoProxy }, setting.Words[string]("intranet.example,10.0.0.0/8", nil),
			"Hosts, domains and networks that are called without the proxy, separated by commas."),
		setting.Key("backoff", func(w *Webhooks) *string { return &w.Backoff }, setting.Word("exponential", "exponential", "plain", "off"), "exponential",
			"How the waits between retries grow. `exponential`: before retry c, from 0, it waits min(`cap`, `factor` · `base`^c); `plain`: the same with a factor of one second; `off`: each retry is at once."),
		setting.Key("factor", func(w *Webhooks) *time.Duration { return &w.Factor }, wait, 25*time.Second, "The first wait."),
		setting.Key("base", func(w *Webhooks) *float64 { return &w.Base }, factor(), 4.0, "What each wait is multiplied by to get the next."),
		setting.Key("cap", func(w *Webhooks) *time.Duration { return &w.Cap }, wait, 52_000*time.Second, "The longest wait."),
		setting.Key("retries", func(w *Webhooks) *int { return &w.Retries }, setting.Count(0, 1000, "", "7"), 7, "Attempts after the first. When all have failed, the message parks."),
		setting.Key("disableAfter", func(w *Webhooks) *time.Duration { return &w.DisableAfter }, setting.PeriodOr("never", time.Hour, 365*setting.Day), 5*setting.Day,
			"A subscription is disabled when an attempt fails and none has succeeded for this long. Its messages wait until somebody resumes it."),
		setting.Maybe("notices", func(w *Webhooks) *string { return &w.Notices }, setting.Words[string]("ops", nil),
			"Notification list that is told, once a day for each subscription, that the node has disabled it, and that messages park because their schedule has ended."),
	}
}
