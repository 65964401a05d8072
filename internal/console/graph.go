package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/seq"
)

// graph is a drawing of the derivations: from the left, streams, source entities, derivations, and
// the entity that shows them. It is laid out here, so that the page needs no script.
type graph struct {
	Width, Height int
	Nodes         []node
	Edges         []edge
}

// node is a box of the drawing. Text is cut to the width of the box; Full is all of it.
type node struct {
	X, Y, W, H int
	Text, Full string
	Href       string
	Class      string // entity, end for a search index, or the class of the state of a stream or a derivation
	Small      string // a second line
}

// TextX, TextY and SmallY are where the texts of a node begin and stand.
func (n node) TextX() int  { return n.X + 8 }
func (n node) TextY() int  { return n.Y + 17 }
func (n node) SmallY() int { return n.Y + 33 }

// edge is a line between two boxes, as the path of an SVG element.
type edge struct{ Path string }

// The measures of a drawing, in pixels.
const (
	lineHeight  = 26 // of a box with one line
	boxHeight   = 42 // of a box with two
	boxGap      = 8
	columnGap   = 44
	streamWidth = 190
	entityWidth = 160
	deriveWidth = 270
	entityX     = streamWidth + columnGap
	deriveX     = entityX + entityWidth + columnGap
	intoX       = deriveX + deriveWidth + columnGap
)

// column places boxes near those that they have edges to.
type column struct {
	x, width, height int
	ends             map[string]*columnEnd
	order            []*columnEnd
}

type columnEnd struct {
	node
	sum, n int // of the middles of the boxes beside it
}

func newColumn(x, width, height int) *column {
	return &column{x: x, width: width, height: height, ends: map[string]*columnEnd{}}
}

// addBox notes that a box, which its Full names, belongs beside the height at. It makes the box when
// it is first named.
func (c *column) addBox(box node, at int) {
	e := c.ends[box.Full]
	if e == nil {
		box.X, box.W, box.H = c.x, c.width, c.height
		e = &columnEnd{node: box}
		c.ends[box.Full] = e
		c.order = append(c.order, e)
	}
	e.sum, e.n = e.sum+at, e.n+1
}

// placeBoxes gives each box a place, in the order of the means of the places beside it.
// Boxes never overlap: each is at least boxGap below the one before.
func (c *column) placeBoxes() (bottom int) {
	slices.SortStableFunc(c.order, func(a, b *columnEnd) int { return cmp.Compare(a.sum*b.n, b.sum*a.n) })
	next := 0
	for _, e := range c.order {
		e.Y = max(next, e.sum/e.n-c.height/2)
		next = e.Y + c.height + boxGap
	}
	return next
}

// boxes are the boxes of a column that was placed.
func (c *column) boxes() []node {
	return seq.Map(c.order, func(e *columnEnd) node { return e.node })
}

// middle is the height at which edges meet a box.
func (n node) middle() int { return n.Y + n.H/2 }

// draw lays the derivations out, grouped by the entity that shows them, with the streams that feed them.
// The order depends on the names alone, so a drawing stays as it is while states change. It does
// not change its arguments.
func draw(ds []derived, ss []stream) *graph {
	ds = slices.Clone(ds)
	slices.SortStableFunc(ds, func(a, b derived) int {
		return cmp.Or(cmp.Compare(first(a.From), first(b.From)), cmp.Compare(a.Into.Text, b.Into.Text), cmp.Compare(a.Name, b.Name))
	})
	g := &graph{Width: intoX + entityWidth + 2, Height: len(ds) * (boxHeight + boxGap)}
	from, into := newColumn(entityX, entityWidth, lineHeight), newColumn(intoX, entityWidth, lineHeight)
	for i := range ds {
		box := ds[i].box(i * (boxHeight + boxGap))
		g.Nodes = append(g.Nodes, box)
		for _, f := range ds[i].From {
			from.addBox(endOf(f), box.middle())
		}
		if ds[i].Into.Text != "" {
			into.addBox(endOf(ds[i].Into), box.middle())
		}
	}
	g.Height = max(g.Height, from.placeBoxes(), into.placeBoxes())
	for i := range ds {
		for _, f := range ds[i].From {
			g.drawEdge(from.ends[f.Text].node, g.Nodes[i])
		}
		if ds[i].Into.Text != "" {
			g.drawEdge(g.Nodes[i], into.ends[ds[i].Into.Text].node)
		}
	}
	feeds := newColumn(0, streamWidth, boxHeight)
	for i := range ss {
		for _, e := range ss[i].Entities {
			feeds.addBox(ss[i].box(), from.ends[e].middle())
		}
	}
	g.Height = max(g.Height, feeds.placeBoxes())
	for i := range ss {
		for _, e := range ss[i].Entities {
			g.drawEdge(feeds.ends[ss[i].box().Full].node, from.ends[e].node)
		}
	}
	g.Height += 2 // the lines of boxes at the edges
	g.Nodes = slices.Concat(feeds.boxes(), from.boxes(), g.Nodes, into.boxes())
	return g
}

// drawEdge draws an edge from the right side of a box to the left side of another one.
func (g *graph) drawEdge(a, b node) {
	x1, y1, x2, y2 := a.X+a.W, a.middle(), b.X, b.middle()
	mid := (x1 + x2) / 2
	g.Edges = append(g.Edges, edge{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, mid, y1, mid, y2, x2, y2)})
}

// endOf is the box of an entity or of a search index.
func endOf(to link) node {
	return node{Text: fit(to.Text, 21), Full: to.Text, Href: to.Href, Class: map[bool]string{true: "entity", false: "end"}[to.Href != ""]}
}

// box is the box of a derivation at a height.
func (d *derived) box(y int) node {
	small := d.State
	if done, _, _ := strings.Cut(d.Note, ","); d.State == "building" && done != "" {
		small += " " + done
	}
	full := d.Kind + " " + d.Name + ": " + small
	if d.State == paused {
		full += " " + d.Note
		if at, _, some := strings.Cut(d.Note, ":"); some && strings.HasPrefix(at, "at ") {
			small += " " + at
		}
	}
	if d.Rate != "" {
		small += ", " + d.Rate + ", lag " + d.Lag
		full += ", " + d.Rate + " of its source rows, lag " + d.Lag
	}
	return node{X: deriveX, Y: y, W: deriveWidth, H: boxHeight, Text: fit(d.Name, 36), Full: full, Href: d.Leads, Class: d.Class, Small: fit(small, 46)}
}

// box is the box of a stream.
func (s *stream) box() node {
	small, full := s.State, "stream of "+s.Table+": "+s.State
	if s.Note != "" {
		full += ", " + s.Note
	}
	if s.Rate != "" {
		small += ", " + s.Rate + ", lag " + s.Lag
		full += ", " + s.Shards + ", " + s.Rate + ", lag " + s.Lag
	}
	return node{Text: fit("stream "+s.Table, 26), Full: full, Href: s.Leads, Class: s.Class, Small: fit(small, 32)}
}

// first is the text of the first link, or "" if there are none.
func first(ls []link) string {
	if len(ls) == 0 {
		return ""
	}
	return ls[0].Text
}

// fit cuts a text to so many characters.
func fit(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return brief(s, most-1)
}
