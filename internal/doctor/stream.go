package doctor

import (
	"fmt"
	"strings"
)

// Reader is the way in which weir's programs read a stream, as projector status names it.
type Reader string

// The readers that are not functions are processes.
const (
	ByProcess Reader = "process"
	ByShard   Reader = "shard"
)

// Mapping is an event source mapping: one function on one stream.
type Mapping struct {
	ID       string
	Function string
	State    string // Enabled, Disabled, or on the way to one
	Batch    int
	Tumbling int // seconds, 0 for none
	Parallel int
	Retries  int  // -1 for no limit
	MaxAge   int  // seconds, -1 for no limit
	Filters  bool // Lambda leaves records out, by filter criteria
	Partial  bool // ReportBatchItemFailures
	Failures string
	Last     string // the result of the last event
	// Program is the model of the function by its environment. Of one that is not weir's, Model is "".
	Program Fact[Program]
}

// Program is the configuration of a function.
type Program struct {
	Model    string
	Timeout  int       // seconds
	Memory   int       // MB
	Reserved Fact[int] // concurrency, -1 for none
	Log      string    // its log group
	Behind   string    // the alias that the mapping calls, if its version is not the function as it is now
}

// maxReaders is how many readers a shard may have before DynamoDB throttles them.
const maxReaders = 2

// streamReaders judges the functions on a stream, and how many readers it has.
func (s *subject) streamReaders(t *Table) {
	all, ok := t.Mappings.known()
	if !ok {
		s.addUnknown("mapping", t.Mappings.Unknown, "")
		s.addUnknown("readers", t.Mappings.Unknown, "")
		return
	}
	readers := []string{}
	if t.Reader != "" && t.Reader != ByShard {
		readers = append(readers, "weir's processes")
	}
	for i := range all {
		m := &all[i]
		if !strings.HasPrefix(m.State, "Disabl") {
			readers = append(readers, m.Function)
		}
		s.mapping(m, t)
	}
	if len(all) == 0 {
		s.ok("mapping", "no function reads its stream; a process does, or functions that a template makes")
	}
	says := fmt.Sprintf("%d of %d that a shard may have: %s", len(readers), maxReaders, strings.Join(readers, ", "))
	switch {
	case len(readers) > maxReaders:
		s.bad("readers", says+"; DynamoDB throttles all of them", "disable what is not needed, or have one function pass records on")
	case len(readers) == 0:
		s.ok("readers", "none of the two that a shard may have")
	default:
		s.ok("readers", says)
	}
	s.addUnknown("other readers", "to be asked of people: no service lists programs that read a stream without Lambda, such as Kinesis adapters", "")
}

// mapping judges the settings of one function on the stream.
// A setting that loses records is bad, and one that costs more or says less a warning; each has the command that changes it. A function
// that is not weir's is left alone.
func (s *subject) mapping(m *Mapping, t *Table) {
	program, ok := m.Program.known()
	if !ok {
		s.addUnknown("mapping", m.Program.Unknown+", to tell whether the function "+m.Function+" is weir's", "")
		return
	}
	if program.Model == "" {
		s.ok("mapping", "the function "+m.Function+" reads the stream too, and is not weir's")
		return
	}
	n := len(s.x.all)
	change := func(flags string) string {
		return "aws lambda update-event-source-mapping --uuid " + m.ID + " " + flags
	}
	of := "the mapping of " + m.Function
	if !strings.HasPrefix(m.State, "Enabl") && m.State != "Updating" {
		s.bad("mapping", of+" is "+m.State+": unless a process took its place, nothing is derived, and records expire after 24 hours", change("--enabled"))
	}
	if !m.Partial {
		s.bad("mapping", of+" lacks ReportBatchItemFailures: what the function leaves for later would count as done", change("--function-response-types ReportBatchItemFailures"))
	}
	if m.Tumbling == 0 {
		s.bad("mapping", of+" has no tumbling window: its events name no shard, and the function refuses them", change("--tumbling-window-in-seconds 60"))
	}
	if m.Parallel > 1 {
		s.bad("mapping", fmt.Sprintf("%s has a parallelization factor of %d: records come out of order, and the function refuses them", of, m.Parallel), change("--parallelization-factor 1"))
	}
	if m.Retries >= 0 || m.MaxAge >= 0 {
		s.bad("mapping", of+" gives records up after "+givesUp(m)+": each is a gap", change("--maximum-retry-attempts -1 --maximum-record-age-in-seconds -1"))
	}
	if m.Filters {
		s.bad("mapping", of+" has filter criteria: records that do not pass them never come, and nothing says so", change(`--filter-criteria '{"Filters":[]}'`))
	}
	if m.Failures == "" {
		s.warn("mapping", of+" has no on-failure destination, such as the ARN of a queue in $QUEUE: no alarm tells when Lambda gives records up", change(`--destination-config "OnFailure={Destination=$QUEUE}"`))
	}
	if m.Batch < 100 {
		s.warn("mapping", fmt.Sprintf("%s takes %d records at a time: a target is written once a batch, so small batches cost more", of, m.Batch), change("--batch-size 1000 --maximum-batching-window-in-seconds 1"))
	}
	if strings.Contains(strings.ToLower(m.Last), "problem") || strings.Contains(strings.ToLower(m.Last), "error") {
		s.bad("mapping", of+" failed last: "+m.Last, "aws logs tail "+program.Log)
	}
	s.program(m.Function, &program)
	if len(s.x.all) == n {
		s.ok("mapping", of+" has the settings of deploy template")
	}
}

// Bounds of a function. Below them a batch of 1,000 records, or one that waits for a service, may not end.
const (
	leastTimeout = 30
	leastMemory  = 256
)

// program judges the configuration of a function of weir's. It says nothing where all is well.
func (s *subject) program(name string, p *Program) {
	change := "aws lambda update-function-configuration --function-name " + name
	if p.Timeout < leastTimeout {
		s.warn("mapping", fmt.Sprintf("the function %s ends after %d seconds: a batch that waits for a service comes again and again", name, p.Timeout), change+" --timeout 60")
	}
	if p.Memory < leastMemory {
		s.warn("mapping", fmt.Sprintf("the function %s has %d MB, and a processor's share to match: it is slow", name, p.Memory), change+" --memory-size 512")
	}
	reserved, ok := p.Reserved.known()
	stop := "aws lambda delete-function-concurrency --function-name " + name
	switch {
	case !ok:
		s.addUnknown("mapping", p.Reserved.Unknown+", to know the concurrency that is reserved for "+name, "")
	case reserved == 0:
		s.bad("mapping", "the function "+name+" has a reserved concurrency of 0: it never runs", stop)
	case reserved == 1:
		s.warn("mapping", "the function "+name+" has a reserved concurrency of 1: each open shard and the tick need one", stop)
	}
	if p.Behind != "" {
		s.warn("mapping", "the function "+name+" has other code or settings than the version of its alias "+p.Behind+", which runs: the deployment named no new Release, or went back",
			"aws lambda update-alias --function-name "+name+" --name "+p.Behind+` --function-version "$(aws lambda publish-version --function-name `+name+` --query Version --output text)"`)
	}
}

// givesUp says when a mapping gives a record up.
func givesUp(m *Mapping) string {
	var parts []string
	if m.Retries >= 0 {
		parts = append(parts, fmt.Sprintf("%d retries", m.Retries))
	}
	if m.MaxAge >= 0 {
		parts = append(parts, fmt.Sprintf("%d seconds", m.MaxAge))
	}
	return strings.Join(parts, " or ")
}
