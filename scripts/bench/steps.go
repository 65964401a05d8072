package main

import "strconv"

// steps measures a replay, as in replay.go, of movie nights: a pick and ratings, in any order,
// advance the status of each round, and suggestions count votes.
func (b *bench) steps() error {
	rec, err := b.recordingOf("movienight", newNights(3).next, pick(b, 20_000, 100_000))
	if err != nil {
		return err
	}
	return b.replayed("replay with steps", rec, 3)
}

// nights generates the streams of groups that choose films. Some dozens of rounds are open at
// any time. The records of one round have no order among the tables: a rating may come before
// its round.
type nights struct {
	teller
	rounds uint32
	open   [][]pair // what is still to be told, of each round
}

// pair is a change of a row.
type pair struct{ old, new image }

func newNights(seed uint64) *nights {
	n := &nights{teller: newTeller(seed)}
	n.arn = true
	return n
}

const openRounds = 40

// next appends the next record.
func (n *nights) next(b []byte) []byte {
	n.now += 1 + n.rand.Int64N(400)
	for len(n.open) < openRounds {
		n.rounds++
		n.open = append(n.open, n.round(n.rounds))
	}
	i := n.rand.IntN(len(n.open))
	of := n.open[i]
	p := of[0]
	if n.open[i] = of[1:]; len(of) == 1 {
		n.open[i] = n.open[len(n.open)-1]
		n.open = n.open[:len(n.open)-1]
	}
	return n.change(b, p.old, p.new)
}

const films, attendees = 4, 5

// round returns all changes of a round. The changes of each table keep their order; the tables
// are interleaved at random.
func (n *nights) round(id uint32) []pair {
	at := n.now
	r := round{id: id, group: n.rand.Uint32N(id/8 + 4), at: at}
	p := choice{id: id, group: r.group, film: n.rand.Uint32N(films), at: at + 1000}
	seen := p
	seen.watched = at + 2000
	parts := [][]pair{{{nil, r}}, {{nil, p}, {p, seen}}, nil, nil, nil}
	for f := range uint32(films) {
		parts[2] = append(parts[2], pair{nil, suggestion{round: id, film: f}})
	}
	for m := range uint32(attendees) {
		v := vote{round: id, film: n.rand.Uint32N(films), member: m, up: n.rand.IntN(3) > 0, at: at + int64(m)}
		parts[3] = append(parts[3], pair{nil, v})
		if n.rand.IntN(4) == 0 {
			again := v
			again.up, again.at = !v.up, v.at+100
			parts[3] = append(parts[3], pair{v, again})
		}
		parts[4] = append(parts[4], pair{nil, opinion{round: id, member: m, word: n.rand.Uint32N(3), at: at + 3000 + int64(m)}})
	}
	var all []pair
	for len(parts) > 0 {
		i := n.rand.IntN(len(parts))
		all = append(all, parts[i][0])
		if parts[i] = parts[i][1:]; len(parts[i]) == 0 {
			parts = append(parts[:i], parts[i+1:]...)
		}
	}
	return all
}

type round struct {
	id, group uint32
	at        int64
}

type suggestion struct{ round, film uint32 }

type vote struct {
	round, film, member uint32
	up                  bool
	at                  int64
}

type choice struct {
	id, group, film uint32
	at, watched     int64
}

type opinion struct {
	round, member, word uint32
	at                  int64
}

func (round) table() string      { return "Rounds" }
func (suggestion) table() string { return "Suggestions" }
func (vote) table() string       { return "Votes" }
func (choice) table() string     { return "Picks" }
func (opinion) table() string    { return "Ratings" }

func (r round) key(b []byte) []byte { return text(b, "round_id", ident('r', r.id)) }

func (r round) row(b []byte) []byte {
	b = text(b, "group_id", ident('g', r.group))
	b = text(b, ",started_by", member(0, r.id))
	b = text(b, ",status", "voting")
	b = text(b, ",created_at", stamp(r.at))
	b = text(b, ",voting_started_at", stamp(r.at))
	b = append(b, `,"attendees":{"L":[`...)
	for m := range uint32(attendees) {
		if m > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"S":"`...), member(m, r.id)...), `"}`...)
	}
	return append(b, `]}`...)
}

// member returns the id of person m of a round.
func member(m, round uint32) string { return ident('u', round*attendees+m) }

func (s suggestion) key(b []byte) []byte {
	return number(text(b, "round_id", ident('r', s.round)), ",tmdb_movie_id", uint64(s.film))
}

func (s suggestion) row(b []byte) []byte {
	b = number(b, "position", uint64(s.film))
	b = text(b, ",title", words(s.round*films+s.film, 0, 3))
	b = number(b, ",year", uint64(1970+s.film))
	return text(b, ",content_rating", "PG-13")
}

func (v vote) key(b []byte) []byte {
	b = text(b, "round_id", ident('r', v.round))
	return text(b, ",vote_key", strconv.Itoa(int(v.film)), "#", member(v.member, v.round))
}

func (v vote) row(b []byte) []byte {
	b = number(b, "tmdb_movie_id", uint64(v.film))
	b = text(b, ",member_id", member(v.member, v.round))
	b = text(b, ",vote", map[bool]string{true: "up", false: "down"}[v.up])
	return text(b, ",voted_at", stamp(v.at))
}

func (c choice) key(b []byte) []byte { return text(b, "pick_id", ident('p', c.id)) }

func (c choice) row(b []byte) []byte {
	b = text(b, "round_id", ident('r', c.id))
	b = text(b, ",group_id", ident('g', c.group))
	b = number(b, ",tmdb_movie_id", uint64(c.film))
	b = text(b, ",title", words(c.id*films+c.film, 0, 3))
	b = text(b, ",picked_by", member(0, c.id))
	b = text(b, ",picked_at", stamp(c.at))
	b = append(b, `,"watched":{"BOOL":`...)
	b = append(strconv.AppendBool(b, c.watched > 0), '}')
	if c.watched > 0 {
		b = text(b, ",watched_at", stamp(c.watched))
	}
	return b
}

func (o opinion) key(b []byte) []byte {
	return text(text(b, "round_id", ident('r', o.round)), ",member_id", member(o.member, o.round))
}

func (o opinion) row(b []byte) []byte {
	b = text(b, "rating", [...]string{"loved", "liked", "did_not_like"}[o.word])
	return text(b, ",rated_at", stamp(o.at))
}
