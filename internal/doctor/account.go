package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Identity is who asks, and where.
type Identity struct {
	ARN    string // of the caller; "" where the endpoint has no accounts
	Region string
}

// Concurrency is how many invocations an account may have at once in a region.
type Concurrency struct {
	Limit      int
	Unreserved int // the concurrency that functions without a reservation share
}

// Names are the tables of this stage.
type Names struct {
	Stage  string
	Own    string   // weir's own table
	Tables []string // those of the model, as people find them
	Taken  string   // why one of them belongs to another stage; "" if none does
}

// Catalog is the row that earlier programs left of this model.
type Catalog struct {
	Program string // the formats that this program reads and writes
	Begun   bool   // some program has begun
	Refused string // why this program would be
}

// Permission is one action that a kind of process needs, on one resource.
type Permission struct {
	Action   string // such as dynamodb:PutItem
	Resource string // such as table/gallery
	Reason   string
	// Allowed is asked by a call that changes nothing.
	Allowed Fact[bool]
}

// examineIdentity says whose credentials the examination has. All findings on permissions are of these.
func (x *examination) examineIdentity(f *Facts) {
	s := x.beginFindings("credentials")
	is, ok := f.Identity.known()
	switch {
	case !ok:
		s.addUnknown("identity", f.Identity.Unknown, "")
	case strings.HasSuffix(is.ARN, ":root"):
		s.warn("identity", "they are those of the account's root user, in "+is.Region, "use a role: docs/guide/operations.md, Permissions")
	default:
		s.ok("identity", "they are those of "+is.ARN+", in "+is.Region)
	}
}

// leastConcurrency is the need of functions that share it: one for each open shard, the tick, and queries. A new account has 10.
const leastConcurrency = 50

// concurrency judges the concurrency of the account.
func (x *examination) concurrency(f *Facts) {
	s := x.beginFindings("account")
	is, ok := f.Concurrency.known()
	says := fmt.Sprintf("the account may have %d concurrent executions, of which %d are not reserved", is.Limit, is.Unreserved)
	switch {
	case !ok:
		s.addUnknown("concurrency", f.Concurrency.Unknown, "")
	case is.Unreserved < leastConcurrency:
		s.warn("concurrency", says+": functions of streams and queries are throttled early",
			"aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000")
	default:
		s.ok("concurrency", fmt.Sprintf("%s; the alarm belongs at %d", says, is.Limit*8/10))
	}
}

// Differences of clocks. AWS refuses requests that are signed five minutes from its own time, and leases are told by
// each machine's clock.
const (
	clockSlack  = 30 * time.Second
	clockRefuse = 5 * time.Minute
)

// clock judges how far this machine's clock is from DynamoDB's. AWS refuses a request whose
// signature is more than five minutes off (Signature Version 4).
func (x *examination) clock(f *Facts) {
	s := x.beginFindings("clock")
	ahead, ok := f.Ahead.known()
	says := fmt.Sprintf("this machine is %s ahead of DynamoDB", ahead.Round(time.Second))
	if ahead < 0 {
		says = fmt.Sprintf("this machine is %s behind DynamoDB", (-ahead).Round(time.Second))
	}
	switch {
	case !ok:
		s.addUnknown("clock", f.Ahead.Unknown, "")
	case ahead.Abs() >= clockRefuse:
		s.bad("clock", says+"; AWS refuses requests that are signed five minutes off", "set the clock: timedatectl set-ntp true")
	case ahead.Abs() >= clockSlack:
		s.warn("clock", says+"; weir corrects for it, other programs may not", "set the clock: timedatectl set-ntp true")
	default:
		s.ok("clock", "this machine and DynamoDB agree to "+clockSlack.String())
	}
}

// examineNames says which tables the stage has, and whether another stage has one of them.
func (x *examination) examineNames(f *Facts) {
	s := x.beginFindings("names")
	is, ok := f.Names.known()
	switch {
	case !ok:
		s.addUnknown("stage", f.Names.Unknown, "")
	case is.Taken != "":
		s.bad("stage", is.Taken, "--stage NAME, or --tables TABLE=OTHER")
	default:
		s.ok("stage", fmt.Sprintf("stage %s keeps its ledgers in %s, and reads %s", is.Stage, is.Own, strings.Join(is.Tables, ", ")))
	}
}

// examineVersions asks the catalog for the verdict of Start: whether this program and model can go on. It enters
// nothing.
// The catalog of a model that no program has begun is empty, and no obstacle.
func (x *examination) examineVersions(f *Facts) {
	s := x.beginFindings("versions")
	is, ok := f.Catalog.known()
	switch {
	case !ok:
		s.addUnknown("catalog", f.Catalog.Unknown, "")
	case is.Refused != "":
		s.bad("catalog", "this program and model would be refused: "+is.Refused, f.Command("status"))
	case !is.Begun:
		s.ok("catalog", "no program has begun; this one has "+is.Program)
	default:
		s.ok("catalog", "this program can go on; it has "+is.Program)
	}
}

// examinePermissions gives one finding for all actions on a resource that are allowed, and one for each that is not.
// A fact that could not be asked is unknown, never allowed.
func (x *examination) examinePermissions(f *Facts) {
	s := x.beginFindings("permissions")
	var resources []string
	allowed, unknown := map[string][]string{}, map[string]map[string][]string{} // by resource; unknown also by the missing permission
	for i := range f.Permissions {
		p := &f.Permissions[i]
		if !slices.Contains(resources, p.Resource) {
			resources = append(resources, p.Resource)
		}
		switch is, ok := p.Allowed.known(); {
		case !ok:
			if unknown[p.Resource] == nil {
				unknown[p.Resource] = map[string][]string{}
			}
			unknown[p.Resource][p.Allowed.Unknown] = append(unknown[p.Resource][p.Allowed.Unknown], short(p.Action))
		case is:
			allowed[p.Resource] = append(allowed[p.Resource], short(p.Action))
		default:
			s.bad("permission", p.Action+" on "+p.Resource+" is denied. "+p.Reason,
				fmt.Sprintf(`{"Effect": "Allow", "Action": %q, "Resource": "arn:aws:dynamodb:*:*:%s"}`, p.Action, p.Resource))
		}
	}
	for _, r := range resources {
		for _, needs := range sortedKeys(unknown[r]) {
			s.addUnknown("permission", needs+", to know whether "+strings.Join(unknown[r][needs], ", ")+" on "+r+" are allowed", "")
		}
		if len(allowed[r]) > 0 {
			s.ok("permission", r+": "+strings.Join(allowed[r], ", "))
		}
	}
	if len(f.Permissions) > 0 {
		s.addUnknown("roles of functions", "to run as each role: doctor asks what its own credentials may do. A template gives each role what it needs, and no more", f.Command("deploy template"))
	}
}

// short is an action without its service.
func short(action string) string {
	_, name, _ := strings.Cut(action, ":")
	return name
}
