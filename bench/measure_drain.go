package main

import "context"

// drainMeasure: a backlog that exists when the program starts is worked off.
func drainMeasure(z sizes) measure {
	m := measure{name: "drain", columns: []column{{key: "rate", unit: "msg/s"}}}
	sources := queues(
		goqiteRaw(), goqiteJobs(), goqiteJobsTuned(), backliteDefault(), backliteTuned(),
		riverDefault(), riverTuned(), bareDrainer(100), bareDrainer(500),
	)
	for _, s := range sources {
		prepare := func(_ context.Context, dir string) error {
			if s.role == roleBare {
				return fillBare(dir, 0, z.backlog)
			}
			return fill(s.open, dir, 1, 0, z.backlog)
		}
		m.add(s, prepare, func(_ context.Context, c cell) (values, error) {
			if err := copyDir(c.prepared, c.dir); err != nil {
				return nil, err
			}
			syncDisks()
			return drainRate(s.open, c.dir, z)
		})
	}
	return m
}
