package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// Cluster is an OpenSearch cluster as it describes itself.
type Cluster struct {
	URL          string
	Refused      string // why its address is refused
	Down         string // why it does not answer
	Distribution string // opensearch; "" for another product
	Version      string
	Health       Fact[string] // green, yellow or red
	Scripts      Fact[string] // why it does not run inline scripts; "" if it does
	ReadOnly     Fact[bool]   // blocked for writes, as a cluster whose disk is full is
	Free         Fact[int]    // percent of the disk of the node that has least
	// Indexes are the model's, by name, with their state: live, building, left or new.
	Indexes Fact[map[string]string]
}

// leastFree is where OpenSearch's low watermark is: below it a node takes no more shards.
const leastFree = 15

// search judges the cluster. A cluster that does not answer gives one finding, and none on facts that
// could not be asked.
func (x *examination) search(f *Facts) {
	s := x.beginFindings("search")
	c, ok := f.Search.known()
	switch {
	case !f.Searches:
		s.ok("cluster", "the model has no searches")
		return
	case !ok:
		s.addUnknown("cluster", f.Search.Unknown, "")
		return
	case c.Refused != "":
		s.bad("cluster", c.Refused, "name another: --opensearch URL")
		return
	case c.Down != "":
		s.bad("cluster", c.URL+" does not answer: "+c.Down+"; rows are derived, and searches answer 503", "start it, or name another: --opensearch URL")
		return
	}
	s.ok("cluster", c.URL+" answers")
	s.searchVersion(&c)
	s.health(&c)
	switch why, ok := c.Scripts.known(); {
	case !ok:
		s.addUnknown("scripts", c.Scripts.Unknown, "")
	case why != "":
		s.bad("scripts", "it runs no inline Painless scripts, by which every document is written: "+why, "script.allowed_types: inline in opensearch.yml")
	default:
		s.ok("scripts", "it runs inline Painless scripts")
	}
	s.indexesOfModel(f, &c)
}

// searchVersion judges the cluster by its own description. Elasticsearch is refused: it is not
// tested.
func (s *subject) searchVersion(c *Cluster) {
	major, _, _ := strings.Cut(c.Version, ".")
	n, err := strconv.Atoi(major)
	switch {
	case c.Distribution != "opensearch":
		s.bad("version", "it is no OpenSearch, and says version "+c.Version, "use a cluster of OpenSearch 2")
	case err != nil || n < 1:
		s.addUnknown("version", "a version that can be read; it says "+strconv.Quote(c.Version), "")
	case n != 2:
		s.warn("version", "it is OpenSearch "+c.Version+"; weir is tested with 2.19", "")
	default:
		s.ok("version", "OpenSearch "+c.Version)
	}
}

// health judges health, blocks and disks, each by itself: one may be unknown and the others not.
func (s *subject) health(c *Cluster) {
	switch is, ok := c.Health.known(); {
	case !ok:
		s.addUnknown("health", c.Health.Unknown, "")
	case is == "green":
		s.ok("health", "green")
	case is == "yellow":
		s.warn("health", "yellow: some shards have no copy on another node", "add a node, or set index.number_of_replicas to 0")
	default:
		s.bad("health", is+": some shards are missing, and documents with them", "GET _cluster/allocation/explain")
	}
	if blocked, ok := c.ReadOnly.known(); !ok {
		s.addUnknown("writes", c.ReadOnly.Unknown, "")
	} else if blocked {
		s.bad("writes", "an index is blocked for writes, as when a disk is full", `make room, then PUT weir-*/_settings {"index.blocks.read_only_allow_delete": null}`)
	} else {
		s.ok("writes", "no index is blocked")
	}
	if free, ok := c.Free.known(); !ok {
		s.addUnknown("disk", c.Free.Unknown, "")
	} else if free < leastFree {
		s.warn("disk", fmt.Sprintf("a node has %d %% of its disk left; below %d %% it takes no more shards", free, leastFree), "make room, or add a node")
	} else {
		s.ok("disk", fmt.Sprintf("each node has at least %d %% of its disk left", free))
	}
}

// indexesOfModel judges whether each search of the model has an index. A process makes them by itself.
func (s *subject) indexesOfModel(f *Facts, c *Cluster) {
	is, ok := c.Indexes.known()
	if !ok {
		s.addUnknown("indexes", c.Indexes.Unknown, "")
		return
	}
	for _, name := range sortedKeys(is) {
		switch state := is[name]; state {
		case "live":
			s.ok("indexes", name+" is live")
		case "building":
			s.warn("indexes", name+" is being filled, and is not asked yet", f.Command("status"))
		default:
			s.warn("indexes", name+" is not filled: a function applies nothing until it is; a process fills it by itself", f.Command("build"))
		}
	}
}
