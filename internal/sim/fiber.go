package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// fiber is a piece of real code in progress. Exactly one fiber runs at a time: resume hands
// it control, and it gives control back wherever it pauses, which is at each of its calls
// of a service.
type fiber struct {
	name  string
	host  *node // the process it belongs to, nil for none
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	over    bool
	crashed bool
	err     error    // the error that it returned
	bug     string   // a panic of the code under test, with its stack
	asleep  int      // how many turns it sleeps
	drag    int      // after each resume it sleeps fewer turns than this, 0 for none
	doomed  bool     // it makes no more calls after the current one
	idle    bool     // it paused because it found nothing to do
	call    int      // the number of the current call
	pausing []string // the rows of the current call
	began   int      // how many writes the run had done when it last read records
	part    bool     // it may end while its process goes on
	// ready, if set, reports whether the event that the fiber waits for has happened.
	ready func() bool
}

// crash is the panic that unwinds a fiber whose process is dead.
type crash struct{}

// newFiber makes a fiber that begins at its first resume. do runs on the fiber's own stack
// until it returns or the fiber is killed. A crash panic ends it as a dead process does;
// any other panic is a bug of the code under test.
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

// resume lets the fiber run to its next pause.
func (f *fiber) resume() {
	if f.host != nil {
		f.host.running = f
	}
	f.next()
}

// pause gives control back. In a killed fiber it panics with crash.
func (f *fiber) pause() {
	if !f.yield(struct{}{}) {
		panic(crash{})
	}
}

// kill ends the fiber where it is.
func (f *fiber) kill() {
	f.stop()
	if !f.over { // it never ran
		f.over, f.crashed = true, true
	}
}
