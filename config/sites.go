package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// SiteLimits bound what a site may send to central. The zero value bounds
// nothing.
type SiteLimits struct {
	Lists []string // that its notifications may name; none: any
	Rate  int      // messages in a second, ten times as many at once; 0: any
	Daily int64    // bytes of payloads in a day of UTC; 0: any
}

// OtherSites is under which name the limits stand of the sites that have none
// of their own.
const OtherSites = "others"

const (
	mostRate   = 1_000_000
	leastDaily = mebibyte
	mostDaily  = 1 << 50
)

func (l *loader) siteLimits(path string, n *yaml.Node) (s SiteLimits) {
	l.mapping(keys{
		"lists": func(path string, n *yaml.Node) {
			for i, item := range l.list(path, n, "write a list of names, such as [operators]") {
				var name string
				text(l, &name, "operators")(element(path, i), item)
				s.Lists = append(s.Lists, name)
			}
		},
		"rate":  l.integer(&s.Rate, "50"),
		"daily": l.size(&s.Daily),
	})(path, n)
	return s
}

func (r *report) checkSites(c *Config) {
	if len(c.Sites) > 0 && c.Role != CentralOfSites {
		r.fault("sites", "", problem{"is for a node of role central, and this one is " + string(c.Role), "remove it, or write role: central"})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sites)) {
		path, s := join("sites", name), c.Sites[name]
		for i, list := range s.Lists {
			if list == "" {
				r.fault(element(path+".lists", i), "", problem{"is empty", "name a list, or remove lists for any"})
			}
		}
		if s.Rate < 0 || s.Rate > mostRate {
			r.fault(path+".rate", strconv.Itoa(s.Rate), problem{"is out of bounds", fmt.Sprintf("write a number from 1 to %d, or 0 for any", mostRate)})
		}
		if s.Daily != 0 && (s.Daily < leastDaily || s.Daily > mostDaily) {
			r.fault(path+".daily", FormatSize(s.Daily), problem{
				"is out of bounds", fmt.Sprintf("write a size from %s to %s, or 0B for any", FormatSize(leastDaily), FormatSize(mostDaily)),
			})
		}
	}
}

// sitesNode is nil where no site has a limit.
func (c *Config) sitesNode() *yaml.Node {
	if len(c.Sites) == 0 {
		return nil
	}
	all := mapping()
	for _, name := range slices.Sorted(maps.Keys(c.Sites)) {
		s := c.Sites[name]
		one := mapping()
		if len(s.Lists) > 0 {
			lists := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
			for _, list := range s.Lists {
				lists.Content = append(lists.Content, str(list))
			}
			add(one, "lists", lists)
		}
		add(one, "rate", plain("!!int", strconv.Itoa(s.Rate)))
		add(one, "daily", str(FormatSize(s.Daily)))
		add(all, name, one)
	}
	return all
}
