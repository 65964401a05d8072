package opensearch

import (
	"encoding/json"
	"slices"
	"strings"
)

// call is a request that this package sends, and the actions for which the Security plugin asks a role then.
type call struct {
	request string   // {index} stands for an alias or an index
	actions []string // sorted
	doctor  bool     // only doctor sends it
}

// calls are all of them. A test holds the list to the requests that a cluster gets.
var calls = []call{
	{request: "HEAD /", actions: []string{"cluster:monitor/main"}},
	{request: "GET /{index}/_mapping", actions: []string{"indices:admin/mappings/get"}},
	{request: "PUT /{index}", actions: []string{"indices:admin/aliases", "indices:admin/create"}},
	{request: "DELETE /{index}", actions: []string{"indices:admin/delete"}},
	{request: "POST /{index}/_bulk", actions: []string{"indices:data/write/bulk", "indices:data/write/bulk[s]", "indices:data/write/update"}},
	{request: "POST /{index}/_refresh", actions: []string{"indices:admin/refresh", "indices:admin/refresh[s]"}},
	{request: "POST /{index}/_mget", actions: []string{"indices:data/read/mget", "indices:data/read/mget[shard]"}},
	{request: "POST /{index}/_search", actions: []string{"indices:data/read/search"}},
	// Old tombstones are found by a scroll, and deleted in bulk. A scroll that may not be cleared stays open for minutes.
	{request: "POST /{index}/_delete_by_query", actions: []string{
		"indices:data/read/scroll", "indices:data/read/scroll/clear", "indices:data/read/search",
		"indices:data/write/bulk", "indices:data/write/bulk[s]", "indices:data/write/delete", "indices:data/write/delete/byquery"}},
	{request: "GET /", actions: []string{"cluster:monitor/main"}, doctor: true},
	{request: "GET /_cluster/health", actions: []string{"cluster:monitor/health"}, doctor: true},
	{request: "POST /_scripts/painless/_execute", actions: []string{"cluster:admin/scripts/painless/execute"}, doctor: true},
	{request: "GET /{index}/_settings", actions: []string{"indices:monitor/settings/get"}, doctor: true},
	{request: "GET /_cat/allocation", actions: []string{"cluster:monitor/nodes/stats", "cluster:monitor/state"}, doctor: true},
}

// ofCluster reports whether a role is given an action for the cluster, and not for indexes: the plugin takes requests of
// several indexes apart only later.
func ofCluster(action string) bool {
	return strings.HasPrefix(action, "cluster:") || strings.HasPrefix(action, "indices:data/read/scroll") ||
		action == "indices:data/write/bulk" || action == "indices:data/read/mget"
}

// Role is a role of the Security plugin, as PUT _plugins/_security/api/roles/NAME takes it: weir's needs of the indexes
// whose names begin with prefix, after "weir-", and no more. With forDoctor it has doctor's needs, too.
func Role(prefix string, forDoctor bool) []byte {
	type indexes struct {
		Patterns []string `json:"index_patterns"`
		Actions  []string `json:"allowed_actions"`
	}
	var role struct {
		Cluster []string  `json:"cluster_permissions"`
		Indexes []indexes `json:"index_permissions"`
	}
	of := indexes{Patterns: []string{"weir-" + prefix + "*"}}
	for _, c := range calls {
		for _, a := range c.actions {
			list := &of.Actions
			if ofCluster(a) {
				list = &role.Cluster
			}
			if (!c.doctor || forDoctor) && !slices.Contains(*list, a) {
				*list = append(*list, a)
			}
		}
	}
	slices.Sort(role.Cluster)
	slices.Sort(of.Actions)
	role.Indexes = []indexes{of}
	b, err := json.MarshalIndent(role, "", "  ")
	if err != nil {
		panic(err) // texts
	}
	return append(b, '\n')
}
