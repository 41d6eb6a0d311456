package holdfast

import "log/slog"

// owner returns the process that owns the store, if it is another one; else it is empty.
func (r *dispatch) owner() string {
	if r.owned == nil {
		return ""
	}
	return r.owned.Owner()
}

// heed notices that another process owns the store now, or this one again. Meanwhile
// nobody waits for an attempt that is not made here.
func (r *dispatch) heed() {
	owner := r.owner()
	if r.idles == (owner != "") {
		return
	}
	if r.idles = owner != ""; !r.idles {
		r.log.InfoContext(r.work, "this process owns the store now: delivering")
		return
	}
	r.log.WarnContext(r.work, "another process owns the store: this one delivers nothing meanwhile", slog.String("owner", owner))
	for _, l := range r.agenda.all {
		r.shut(l)
	}
}
