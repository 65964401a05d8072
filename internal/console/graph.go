package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// graph is a drawing of the derivations: source entities on the left, derivations in the middle,
// and what shows them on the right. It is laid out here, so that the page needs no script.
type graph struct {
	Width, Height int
	Nodes         []node
	Edges         []edge
}

// node is a box of the drawing. Text is cut to what the box holds; Full is all of it.
type node struct {
	X, Y, W, H int
	Text, Full string
	Href       string
	Class      string // entity, end for a search index, or the class of a derivation's state
	Small      string // a second text, at the right end
}

// TextX, EndX and TextY are where the texts of a node begin, end and stand.
func (n node) TextX() int { return n.X + 8 }
func (n node) EndX() int  { return n.X + n.W - 8 }
func (n node) TextY() int { return n.Y + 17 }

// edge is a line between two boxes, as the path of an SVG element.
type edge struct{ Path string }

// The measures of a drawing, in pixels.
const (
	nodeHeight  = 26
	nodePitch   = 34
	entityWidth = 170
	deriveWidth = 450
	columnGap   = 80
	deriveX     = entityWidth + columnGap
	intoX       = deriveX + deriveWidth + columnGap
)

// column places the ends of edges near the derivations that they lead to.
type column struct {
	x     int
	ends  map[string]*columnEnd
	order []*columnEnd
}

type columnEnd struct {
	link
	sum, n int // of the places of its derivations
	y      int
}

// add notes that the end to belongs beside the derivation at the height at, and makes the end when
// it is first named.
func (c *column) add(to link, at int) {
	e := c.ends[to.Text]
	if e == nil {
		e = &columnEnd{link: to}
		c.ends[to.Text] = e
		c.order = append(c.order, e)
	}
	e.sum, e.n = e.sum+at, e.n+1
}

// place gives each end a place, in the order of the means of its derivations' places.
// Ends never overlap: each is at least nodePitch below the one before.
func (c *column) place() (bottom int) {
	slices.SortStableFunc(c.order, func(a, b *columnEnd) int { return cmp.Compare(a.sum*b.n, b.sum*a.n) })
	next := 0
	for _, e := range c.order {
		e.y = max(next, e.sum/e.n)
		next = e.y + nodePitch
	}
	return next
}

// draw lays the derivations out, grouped by what shows them.
// The order depends on the names alone, so a drawing stays as it is while states change. It does
// not change its argument.
func draw(ds []derived) *graph {
	ds = slices.Clone(ds)
	slices.SortStableFunc(ds, func(a, b derived) int {
		return cmp.Or(cmp.Compare(first(a.From), first(b.From)), cmp.Compare(a.Into.Text, b.Into.Text), cmp.Compare(a.Name, b.Name))
	})
	from := &column{x: 0, ends: map[string]*columnEnd{}}
	into := &column{x: intoX, ends: map[string]*columnEnd{}}
	g := &graph{Width: intoX + entityWidth, Height: len(ds) * nodePitch}
	for i := range ds {
		d, y := &ds[i], i*nodePitch
		small := d.State
		if done, _, _ := strings.Cut(d.Note, ","); d.State == "building" && done != "" {
			small += " " + done
		}
		full := d.Kind + " " + d.Name + ": " + small
		if d.Rate != "" {
			small += ", " + d.Rate + ", lag " + d.Lag
			full += ", " + d.Rate + " of its source rows, lag " + d.Lag
		}
		g.Nodes = append(g.Nodes, node{X: deriveX, Y: y, W: deriveWidth, H: nodeHeight, Text: fit(d.Name, 34), Full: full, Href: d.Leads, Class: d.Class, Small: fit(small, 36)})
		for _, f := range d.From {
			from.add(f, y)
		}
		if d.Into.Text != "" {
			into.add(d.Into, y)
		}
	}
	g.Height = max(g.Height, from.place(), into.place())
	for i := range ds {
		d, y := &ds[i], i*nodePitch+nodeHeight/2
		for _, f := range d.From {
			g.Edges = append(g.Edges, curve(entityWidth, from.ends[f.Text].y+nodeHeight/2, deriveX, y))
		}
		if d.Into.Text != "" {
			g.Edges = append(g.Edges, curve(deriveX+deriveWidth, y, intoX, into.ends[d.Into.Text].y+nodeHeight/2))
		}
	}
	for _, c := range []*column{from, into} {
		for _, e := range c.order {
			g.Nodes = append(g.Nodes, node{X: c.x, Y: e.y, W: entityWidth, H: nodeHeight, Text: fit(e.Text, 22), Full: e.Text, Href: e.Href, Class: map[bool]string{true: "entity", false: "end"}[e.Href != ""]})
		}
	}
	return g
}

// first is the text of the first link, or "" if there are none.
func first(ls []link) string {
	if len(ls) == 0 {
		return ""
	}
	return ls[0].Text
}

// curve is an edge between two points.
func curve(x1, y1, x2, y2 int) edge {
	mid := (x1 + x2) / 2
	return edge{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, mid, y1, mid, y2, x2, y2)}
}

// fit cuts a text to so many characters.
func fit(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return brief(s, most-1)
}
