package node

import (
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/socket"
	"github.com/holdfast-mq/holdfast/web"
)

// addPages adds the operator pages to the server of the API, unless they are switched off.
func (n *Node) addPages(to *httpapi.Server) error {
	c := n.cfg.Pages
	if !c.Enabled {
		return nil
	}
	pages, err := web.New(web.Settings{Base: c.Base, Environment: c.Environment, Tone: string(c.Colour)}, to.Service)
	if err != nil {
		return err
	}
	to.Page = pages.Refuse
	for _, r := range pages.Routes() {
		to.Mounts = append(to.Mounts, httpapi.Mount{
			Pattern: r.Pattern, Handler: r.Handler, Right: r.Right, Open: r.Open, Long: r.Long, Operation: r.Operation, Scoped: r.Scoped, Page: r.Page, MaxBody: r.MaxBody,
		})
	}
	return nil
}

// greetPages tells a person where the pages are. A browser does not reach a socket.
func (n *Node) greetPages(b *strings.Builder) {
	if _, ok := socket.Parse(n.cfg.Listen); n.cfg.Pages.Enabled && !ok {
		fmt.Fprintf(b, "  pages       %s%s\n", n.url(), web.Root)
	}
}
