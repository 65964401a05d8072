package sim

// dice is a random number generator that gives the same numbers for the same seed, on any
// machine and with any version of Go.
type dice struct{ state uint64 }

// newDice makes dice for one purpose. Numbers drawn for one purpose never change those for
// another.
func newDice(seed uint64, purpose string, n int) *dice {
	d := &dice{seed}
	for _, c := range []byte(purpose) {
		d.state = d.next() ^ uint64(c)
	}
	d.state = d.next() ^ uint64(n)
	return d
}

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n is a number from 0 to n-1.
func (d *dice) n(n int) int { return int(d.next() >> 1 % uint64(n)) }

// chance is true with probability p.
func (d *dice) chance(p float64) bool { return float64(d.next()>>11)/(1<<53) < p }

// shuffle puts n things into a random order.
func (d *dice) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, d.n(i+1))
	}
}

// choice is something that is done if a number that was drawn lies below a bound.
type choice struct {
	below int
	do    func()
}

// doBelow does the first of the choices whose bound is above n.
func doBelow(n int, of []choice) {
	for _, c := range of {
		if n < c.below {
			c.do()
			return
		}
	}
}

// pick returns a random element of a list, which must not be empty.
func pick[T any](d *dice, of []T) T { return of[d.n(len(of))] }
