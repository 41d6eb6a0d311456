package config

import (
	"time"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Sessions says how long a person who has signed in stays so.
type Sessions struct {
	Life time.Duration // at most
	Idle time.Duration // without a request
}

func sessionKeys() setting.Section[Sessions] {
	return setting.Section[Sessions]{
		setting.Key("life", func(s *Sessions) *time.Duration { return &s.Life }, setting.Period(time.Minute, 30*setting.Day), 12*time.Hour,
			"How long a [session](people.md#sessions) lives at most. Then the person signs in again."),
		setting.Key("idle", func(s *Sessions) *time.Duration { return &s.Idle }, setting.Period(time.Minute, 30*setting.Day), 30*time.Minute,
			"How long a session lives without a request. What an open page asks for by itself does not count."),
	}
}
