package holdfast

import "log/slog"

// owner is the process that has the store, if it is another.
func (r *dispatch) owner() string {
	if r.owned == nil {
		return ""
	}
	return r.owned.Owner()
}

// heed notices that the store is another process's, or this one's again. Nobody
// waits meanwhile for an attempt that is not made here.
func (r *dispatch) heed() {
	owner := r.owner()
	if r.idles == (owner != "") {
		return
	}
	if r.idles = owner != ""; !r.idles {
		r.log.InfoContext(r.work, "this process has the store now: delivering")
		return
	}
	r.log.WarnContext(r.work, "another process has the store: nothing is delivered from here until it lets go", slog.String("owner", owner))
	for _, l := range r.agenda.all {
		r.shut(l)
	}
}
