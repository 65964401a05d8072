package opensearch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/doctor"
)

// Look asks a cluster the questions of doctor. It writes nothing. Indexes are left out: the catalog knows them.
// An error is that of the URL or the context.
func Look(ctx context.Context, target string) (doctor.Cluster, error) {
	t, err := ParseTarget(target)
	if err != nil {
		return doctor.Cluster{}, err
	}
	s, err := newClient(ctx, t, reachTime)
	if err != nil {
		return doctor.Cluster{}, err
	}
	defer s.close()
	c := doctor.Cluster{URL: t.Shown()}
	if err := s.awaitAnswer(ctx); err != nil {
		c.Down = err.Error()
		return c, ctx.Err()
	}
	var info struct {
		Version struct{ Distribution, Number string }
	}
	if err := s.sendOnce(ctx, &info, opensearchapi.InfoRequest{}); err != nil {
		c.Down = err.Error()
		return c, ctx.Err()
	}
	c.Distribution, c.Version = info.Version.Distribution, info.Version.Number
	var health struct{ Status string }
	err = s.sendOnce(ctx, &health, opensearchapi.ClusterHealthRequest{})
	c.Health = factOf(health.Status, "GET _cluster/health", err)
	c.Scripts = s.lookScripts(ctx)
	c.ReadOnly = s.lookBlocks(ctx)
	c.Free = s.lookDisk(ctx)
	return c, ctx.Err()
}

// factOf is an answer, or the request whose permission is needed.
func factOf[T any](is T, request string, err error) doctor.Fact[T] {
	if err == nil {
		return doctor.Known(is)
	}
	if isStatus(err, http.StatusForbidden) || isStatus(err, http.StatusUnauthorized) {
		return doctor.Not[T]("the permission for " + request)
	}
	return doctor.Not[T]("an answer to " + request + ": " + err.Error())
}

// lookScripts runs a script that does nothing. It says why the cluster runs none, "" if it does.
func (s *server) lookScripts(ctx context.Context) doctor.Fact[string] {
	const request = "POST _scripts/painless/_execute"
	err := s.sendOnce(ctx, nil, opensearchapi.ScriptsPainlessExecuteRequest{Body: strings.NewReader(`{"script":{"source":"return 1"}}`)})
	var a *AnswerError
	if errors.As(err, &a) && a.Status == http.StatusBadRequest {
		return doctor.Known(a.Reason)
	}
	return factOf("", request, err)
}

// lookBlocks reports whether an index of weir's, or all of them, are blocked for writes.
func (s *server) lookBlocks(ctx context.Context) doctor.Fact[bool] {
	type blocks struct {
		Blocks map[string]string
	}
	var got map[string]struct{ Settings struct{ Index blocks } }
	err := s.sendOnce(ctx, &got, opensearchapi.IndicesGetSettingsRequest{Index: []string{"weir-*"}, FilterPath: []string{"*.settings.index.blocks"}})
	blocked := false
	for _, ix := range got {
		for _, is := range ix.Settings.Index.Blocks {
			blocked = blocked || is == "true"
		}
	}
	return factOf(blocked, "GET weir-*/_settings", err)
}

// lookDisk is the percentage that the node with the least has left on its disk.
func (s *server) lookDisk(ctx context.Context) doctor.Fact[int] {
	var nodes []struct {
		Percent string `json:"disk.percent"`
	}
	err := s.sendOnce(ctx, &nodes, opensearchapi.CatAllocationRequest{Format: "json"})
	free := []int{}
	for _, n := range nodes {
		if used, err := strconv.Atoi(n.Percent); err == nil {
			free = append(free, 100-used)
		}
	}
	if err == nil && len(free) == 0 {
		return doctor.Not[int]("a cluster that says how full its disks are")
	}
	if len(free) == 0 {
		free = []int{0}
	}
	return factOf(slices.Min(free), "GET _cat/allocation", err)
}
