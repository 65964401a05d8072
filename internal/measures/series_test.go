package measures

// Sizes say how large a deployment is that one process follows.
type Sizes struct {
	Models, Tables, Shards int // Shards are those of one model that the process holds
	Derivations            int // of one model
	Builds                 int // of one model, at the same time
}

// Series returns how many series a process has at the most, and how many of these are by shard.
// It is a bound: a process that has not met a label's value has no series for it.
func Series(s Sizes) (all, byShardOnly int) {
	for _, m := range All() {
		if m.Name == "" {
			continue
		}
		n := 1
		for _, l := range m.Labels {
			switch l {
			case byModel:
				n *= s.Models
			case byTable:
				if !m.Has(byShard.Name) { // a shard has one table
					n *= s.Tables + 1
				}
			case byDerivation:
				n *= s.Derivations
			case byEntity:
				n *= s.Builds
			case byShard:
				n *= min(s.Shards, MaxShards)
			default:
				n *= l.Most
			}
		}
		if m.Type == Histogram {
			n *= len(m.Buckets) + 3 // the one without a bound, the sum and the count
		}
		if all += n; m.Has(byShard.Name) {
			byShardOnly += n
		}
	}
	return all, byShardOnly
}
