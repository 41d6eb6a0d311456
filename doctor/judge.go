package doctor

// Judge judges the findings.
func Judge(f *Findings) Report {
	r := Report{Data: f.Data, Version: f.Program.Version, At: f.Now.UTC()}
	if c := f.Config.Config; c != nil {
		r.Node = c.Node.ID
	}
	r.add(judgeConfig(f)...)
	r.add(judgeNode(f)...)
	if f.Server != nil {
		r.Store = f.Server.Address
		r.add(judgeServer(f)...)
	} else {
		r.add(judgeData(f)...)
		r.add(judgeDurability(f)...)
		r.add(judgeDisk(f)...)
	}
	r.add(judgeClock(f)...)
	r.add(judgeMessages(f)...)
	r.add(judgePeers(f)...)
	r.add(judgeReceiving(f)...)
	r.add(judgeCentral(f)...)
	return r
}
