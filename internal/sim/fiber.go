package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// fiber is a piece of real code that is under way. Exactly one runs at a time: it
// is handed control by resume, and gives it back wherever it pauses, which is at
// each of its calls of a service.
type fiber struct {
	name  string
	host  *node // whose it is, nil for none's
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	over    bool
	crashed bool
	err     error    // how it ended by itself
	bug     string   // a panic of the code under test, with its stack
	asleep  int      // how many turns it sleeps
	drag    int      // for how many turns it sleeps at the most each time that it has gone on
	doomed  bool     // it makes no more calls than the one it is amid
	idle    bool     // it paused because it found nothing to do
	call    int      // the number of the call that it is amid
	amid    []string // the rows of that call
	began   int      // how many writes there had been when it last read records
	part    bool     // it may come to its end while its process goes on
	// ready, when set, says whether what it waits for is there.
	ready func() bool
}

// crash unwinds a fiber whose process is dead.
type crash struct{}

func newFiber(name string, do func(f *fiber) error) *fiber {
	f := &fiber{name: name}
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		defer func() {
			f.over = true
			switch r := recover().(type) {
			case nil:
			case crash:
				f.crashed = true
			default:
				f.bug = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		f.err = do(f)
	})
	return f
}

// resume lets it run to its next pause.
func (f *fiber) resume() {
	if f.host != nil {
		f.host.running = f
	}
	f.next()
}

// pause gives control back. A fiber that is killed does not come back from it.
func (f *fiber) pause() {
	if !f.yield(struct{}{}) {
		panic(crash{})
	}
}

// kill ends it where it stands.
func (f *fiber) kill() {
	f.stop()
	if !f.over { // it never ran
		f.over, f.crashed = true, true
	}
}
