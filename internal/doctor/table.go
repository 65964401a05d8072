package doctor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/seq"
	"weir/internal/store"
)

// Table is DynamoDB's description of one table that the model needs.
// A Table belongs to the caller. Its zero facts are answers: a fact that could not be asked has to say so
// in Unknown.
type Table struct {
	Want  store.Table // under its name in the store
	Model string      // its name in the model; "" for a table of weir's own
	Needs store.Images

	Unknown string // why DynamoDB does not describe it
	Missing bool
	// Status is DynamoDB's TableStatus. Key, Images and the rest are set only if the table was
	// described.
	Status           string
	Key              string // as KeyText writes it
	Indexes          []Index
	Images           string // of its stream; "" if it has none
	Stream           string // the ARN of its stream
	Region, Replicas string
	Strong           bool // a global table with multi-region strong consistency
	OnDemand         bool
	Read, Write      int64 // units a second, unless OnDemand
	TTL              Fact[string]
	PITR             Fact[bool]
	// Readers are the functions on its stream. Lambda is the only service that lists who reads one.
	Mappings Fact[[]Mapping]
	// Reader is who reads the stream of weir's own programs, by the catalog; "" before the first batch.
	Reader Reader
}

// Index is an index of a table as it is.
type Index struct {
	Name     string
	Local    bool
	Key      string
	Projects string // ALL, KEYS_ONLY, INCLUDE, or words if the service says none
	Status   string // "" if the service says none, as for local indexes
}

// Difference is one thing that a table has otherwise than its definition.
type Difference struct {
	Check string // key, index, stream or ttl
	Index string // of which index
	Text  string
	// Waits is true of an index that DynamoDB still builds.
	Waits bool // it goes by itself
}

// KeyText writes a key as differences say it: PK (S), SK (S).
func KeyText(k store.KeySchema) string {
	s := k.Partition.Name + " (" + k.Partition.Type.Descriptor() + ")"
	if k.Sort.Name != "" {
		s += ", " + k.Sort.Name + " (" + k.Sort.Type.Descriptor() + ")"
	}
	return s
}

// Differences says in words how a table differs from its definition. Additional indexes of the table are ignored. It
// is empty if the table can be used as it is. A TTL that could not be asked is left out.
// The order is that of the definition, so the same table gives the same words. deploy tables prints
// them and doctor judges them, by this one comparison. Attributes that an index projects beyond its
// keys are all or nothing here, because a model can ask for no others.
func (t *Table) Differences() (out []Difference) {
	say := func(check, index, format string, args ...any) {
		out = append(out, Difference{Check: check, Index: index, Text: fmt.Sprintf(format, args...)})
	}
	if want := KeyText(t.Want.Key); t.Key != want {
		say("key", "", "its key is %s, should be %s", t.Key, want)
	}
	for i := range t.Want.Indexes {
		ix := &t.Want.Indexes[i]
		is := t.index(ix)
		switch {
		case is == nil:
			say("index", ix.Name, "%s index %s (%s) is missing", indexKind(ix), ix.Name, KeyText(ix.Key))
			continue
		case is.Key != KeyText(ix.Key):
			say("index", ix.Name, "the key of index %s is %s, should be %s", ix.Name, is.Key, KeyText(ix.Key))
		}
		if !ix.KeysOnly && is.Projects != "ALL" {
			say("index", ix.Name, "index %s projects %s, should project ALL", ix.Name, is.Projects)
		}
		if is.Status != "" && is.Status != "ACTIVE" && is.Status != "UPDATING" {
			out = append(out, Difference{Check: "index", Index: ix.Name, Waits: true, Text: fmt.Sprintf("index %s is %s, and cannot be asked yet", ix.Name, is.Status)})
		}
	}
	switch {
	case t.Want.Stream && t.Images == "":
		say("stream", "", "it has no stream, should have one with NEW_AND_OLD_IMAGES")
	case t.Want.Stream && t.Images != string(store.NewAndOldImages):
		say("stream", "", "its stream has %s, should have NEW_AND_OLD_IMAGES", t.Images)
	}
	if ttl, ok := t.TTL.known(); ok && ttl != t.Want.TTL {
		say("ttl", "", "TTL is on %s, should be on %s", cmp.Or(ttl, "nothing"), cmp.Or(t.Want.TTL, "nothing"))
	}
	return out
}

// index is the index of the table that a definition means, nil if it has none.
func (t *Table) index(want *store.Index) *Index {
	return seq.At(t.Indexes, func(is *Index) bool { return is.Name == want.Name && is.Local == want.Local })
}

// indexKind is the name of an index in messages.
func indexKind(ix *store.Index) string {
	if ix.Local {
		return "local"
	}
	return "global"
}

// table judges one table and the readers of its stream.
// A table that is not described, does not exist or cannot be used has one finding alone: everything
// else would follow from it.
func (x *examination) table(f *Facts, t *Table) {
	s := x.beginFindings("table " + t.Want.Name)
	switch {
	case t.Unknown != "":
		s.addUnknown("table", t.Unknown, "")
		return
	case t.Missing:
		s.bad("table", "it does not exist", f.Command("deploy tables"))
		return
	case t.Status != "ACTIVE" && t.Status != "UPDATING":
		s.bad("table", "it is "+t.Status+", and cannot be used", "wait until that has ended: aws dynamodb describe-table --table-name "+t.Want.Name)
		return
	}
	s.ok("table", "it exists, and is "+t.Status)
	s.definition(f, t)
	s.capacity(f, t)
	s.backups(t)
	s.region(f, t)
	if t.Want.Stream && t.Images != "" {
		s.streamReaders(t)
	}
}

// definition judges keys, indexes, stream and TTL by the comparison of deploy tables.
// It reads nothing itself, so a table that could not be described has no finding here but that it is unknown.
func (s *subject) definition(f *Facts, t *Table) {
	name, seen := t.Want.Name, map[string]bool{}
	for _, d := range t.Differences() {
		seen[d.Check+d.Index] = true
		switch d.Check {
		case "key":
			s.bad("key", d.Text+"; the key of a table cannot be changed", "map the model's table to another one: --tables "+cmp.Or(t.Model, name)+"=OTHER")
		case "index":
			s.indexes(t, d)
		case "stream":
			s.stream(t, d)
		case "ttl":
			s.ttl(f, t, d)
		}
	}
	if !seen["key"] {
		s.ok("key", t.Key)
	}
	for i := range t.Want.Indexes {
		if ix := &t.Want.Indexes[i]; !seen["index"+ix.Name] {
			s.ok("index", ix.Name+" has the key "+KeyText(ix.Key)+" and projects "+t.index(ix).Projects)
		}
	}
	if t.Want.Stream && !seen["stream"] {
		s.ok("stream", "it is on, with "+t.Images)
	}
	switch {
	case t.TTL.Unknown != "":
		s.addUnknown("ttl", t.TTL.Unknown, "")
	case !seen["ttl"]:
		s.ok("ttl", "it is on "+cmp.Or(t.Want.TTL, "nothing"))
	}
}

// indexes judges one difference of an index.
// A global index is mended by a command of the AWS CLI; DynamoDB makes or deletes one index of a
// table at a time (UpdateTable).
func (s *subject) indexes(t *Table, d Difference) {
	switch {
	case d.Waits:
		s.warn("index", d.Text, "aws dynamodb describe-table --table-name "+t.Want.Name+" --query Table.GlobalSecondaryIndexes[].IndexStatus")
	default:
		how := "add it to the table, or delete it and make it again: deploy tables changes no table that exists"
		for i := range t.Want.Indexes {
			if ix := &t.Want.Indexes[i]; ix.Name == d.Index && !ix.Local {
				how = "aws dynamodb update-table --table-name " + t.Want.Name + " --attribute-definitions " + attributes(ix) +
					" --global-secondary-index-updates '" + createIndex(ix) + "'"
				if t.index(ix) != nil {
					d.Text += "; delete it, and when it is gone ask doctor how to make it"
					how = `aws dynamodb update-table --table-name ` + t.Want.Name + ` --global-secondary-index-updates '[{"Delete":{"IndexName":"` + ix.Name + `"}}]'`
				}
			} else if ix.Name == d.Index {
				how = "a local index is made with its table: map the model's table to another one"
			}
		}
		s.bad("index", d.Text+"; queries that need it fail", how)
	}
}

// attributes are the definitions of an index's key, as the AWS CLI takes them.
func attributes(ix *store.Index) string {
	parts := []string{"AttributeName=" + ix.Key.Partition.Name + ",AttributeType=" + ix.Key.Partition.Type.Descriptor()}
	if ix.Key.Sort.Name != "" {
		parts = append(parts, "AttributeName="+ix.Key.Sort.Name+",AttributeType="+ix.Key.Sort.Type.Descriptor())
	}
	return strings.Join(parts, " ")
}

// createIndex is the JSON by which update-table adds an index.
// It is for an on-demand table: a provisioned one needs throughput beside it.
func createIndex(ix *store.Index) string {
	keys, projects := `{"AttributeName":"`+ix.Key.Partition.Name+`","KeyType":"HASH"}`, "ALL"
	if ix.Key.Sort.Name != "" {
		keys += `,{"AttributeName":"` + ix.Key.Sort.Name + `","KeyType":"RANGE"}`
	}
	if ix.KeysOnly {
		projects = "KEYS_ONLY"
	}
	return `[{"Create":{"IndexName":"` + ix.Name + `","KeySchema":[` + keys + `],"Projection":{"ProjectionType":"` + projects + `"}}}]`
}

// stream judges a stream that is off or has other images. Those that the model can do with are no obstacle.
// A stream's images cannot be changed while it is on (UpdateTable), so it has to be disabled first,
// and changes meanwhile are in no stream.
func (s *subject) stream(t *Table, d Difference) {
	on := "aws dynamodb update-table --table-name " + t.Want.Name + " --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"
	switch {
	case t.Images == "":
		s.bad("stream", d.Text+"; without it nothing is derived", on)
	case store.Images(t.Images).Has(t.Needs):
		s.warn("stream", d.Text+"; this model needs no more, a changed one may", "")
	default:
		s.bad("stream", d.Text+"; weir refuses it, since what a row was is missing", "aws dynamodb update-table --table-name "+t.Want.Name+
			" --stream-specification StreamEnabled=false && aws dynamodb wait table-exists --table-name "+t.Want.Name+" && "+on)
	}
}

// ttl judges a TTL that is on another attribute, or off.
// Changing the attribute of a TTL takes up to an hour between off and on (UpdateTimeToLive).
func (s *subject) ttl(f *Facts, t *Table, d Difference) {
	is, want, name := t.TTL.Is, t.Want.TTL, t.Want.Name
	on := "aws dynamodb update-time-to-live --table-name " + name + " --time-to-live-specification Enabled=true,AttributeName=" + want
	off := "aws dynamodb update-time-to-live --table-name " + name + " --time-to-live-specification Enabled=false,AttributeName=" + is
	switch {
	case want == "":
		s.warn("ttl", d.Text+"; rows that expire go from what is derived, and the model does not know why", off)
	case is == "" && t.Model == "":
		s.bad("ttl", d.Text+"; what weir keeps would grow for ever", f.Command("deploy tables"))
	case is == "":
		s.warn("ttl", d.Text+"; rows that should expire stay", on)
	default:
		s.bad("ttl", d.Text+"; switch it off, and an hour later on again as doctor then says", off)
	}
}

// capacity judges the capacity mode. The units of weir's own table bound every lease and checkpoint.
// The budget that it suggests is below the table's capacity, since the application writes too.
func (s *subject) capacity(f *Facts, t *Table) {
	mend := "aws dynamodb update-table --table-name " + t.Want.Name + " --billing-mode PAY_PER_REQUEST"
	units := fmt.Sprintf("it is provisioned, with %d read and %d write units a second", t.Read, t.Write)
	switch {
	case t.OnDemand:
		s.ok("capacity", "on demand")
	case t.Model == "":
		s.bad("capacity", units+"; leases and checkpoints would wait for them", mend)
	default:
		s.warn("capacity", units+"; weir writes each target once a batch beside the application. Limit it, or make the table on demand", f.Command("run", "--write-budget", strconv.FormatInt(max(t.Write-1, 1), 10)))
	}
}

// backups judges point-in-time recovery. weir's own table can be built again from the others.
// It is a warning only: weir needs no backups, the application's rows may.
func (s *subject) backups(t *Table) {
	on, ok := t.PITR.known()
	mend := "aws dynamodb update-continuous-backups --table-name " + t.Want.Name + " --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
	switch {
	case !ok:
		s.addUnknown("pitr", t.PITR.Unknown, "")
	case on:
		s.ok("pitr", "point-in-time recovery is on")
	default:
		s.warn("pitr", "point-in-time recovery is off: a wrong deploy that deletes rows cannot be undone", mend)
	}
}

// region judges a table that is replicated: one region derives.
func (s *subject) region(f *Facts, t *Table) {
	switch {
	case t.Model != "" && t.Strong:
		s.bad("region", "it is a global table with multi-region strong consistency, which has neither transactions nor TTL; weir refuses to start", "use a global table with eventual consistency")
	case t.Model == "" || t.Replicas == "":
	case f.DeriveIn == "":
		s.bad("region", "it is replicated to "+t.Replicas+", and no region is named that derives; weir refuses to start", "--derive-in "+cmp.Or(t.Region, "REGION")+", alike in all regions")
	case f.DeriveIn != t.Region:
		s.bad("region", "it is in "+t.Region+", and "+f.DeriveIn+" derives; weir refuses to start here", "run it in "+f.DeriveIn)
	default:
		s.ok("region", "it is replicated, and "+t.Region+" derives")
	}
}
