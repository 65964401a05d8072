package projectorcli

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/deploy"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/seq"
)

// Of the account that templates are read in.
const (
	testAccount   = "123456789012"
	testPartition = "aws"
	testRegion    = "eu-west-1"
)

// stackTemplate is a template of CloudFormation, read with parameters as CloudFormation does.
type stackTemplate struct {
	*testing.T
	parameters map[string]string
	sections   map[string]*yaml.Node
	// attribute is what only a stack that was made knows.
	attribute func(resource, name string) string
}

func readTemplate(t *testing.T, text []byte, parameters map[string]string) *stackTemplate {
	t.Helper()
	var root yaml.Node
	failtest.On(t, yaml.Unmarshal(text, &root))
	s := &stackTemplate{T: t, parameters: map[string]string{
		"AWS::Region": testRegion, "AWS::AccountId": testAccount, "AWS::Partition": testPartition,
	}, sections: map[string]*yaml.Node{}}
	for name, n := range pairs(root.Content[0]) {
		s.sections[name] = n
	}
	for name, n := range pairs(s.sections["Parameters"]) {
		p := map[string]any{}
		failtest.On(t, n.Decode(&p))
		given, is := parameters[name]
		if fallback, has := p["Default"]; !is && has {
			given, is = fmt.Sprint(fallback), true
		}
		if pattern, has := p["AllowedPattern"].(string); has && !regexp.MustCompile(pattern).MatchString(given) || !is {
			t.Fatalf("the parameter %s is %q", name, given)
		}
		s.parameters[name] = given
	}
	for name := range parameters {
		if _, has := s.parameters[name]; !has {
			t.Fatalf("there is no parameter %s", name)
		}
	}
	return s
}

func pairs(n *yaml.Node) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	for i := 0; n != nil && i < len(n.Content); i += 2 {
		out[n.Content[i].Value] = n.Content[i+1]
	}
	return out
}

// resource is one that is made.
type resource struct {
	Properties map[string]any
}

// resources are what is made of some type, by name.
func (s *stackTemplate) resources(kind string) map[string]resource {
	out := map[string]resource{}
	for name, n := range pairs(s.sections["Resources"]) {
		var head struct {
			Type      string `yaml:"Type"`
			Condition string `yaml:"Condition"`
		}
		failtest.On(s, n.Decode(&head))
		if head.Type != kind || head.Condition != "" && !s.holds(head.Condition) {
			continue
		}
		p, _ := s.value(pairs(n)["Properties"]).(map[string]any)
		out[name] = resource{p}
	}
	return out
}

func (s *stackTemplate) holds(condition string) bool {
	n := pairs(s.sections["Conditions"])[condition]
	if n == nil {
		s.Fatalf("there is no condition %s", condition)
	}
	is, ok := s.value(n).(bool)
	if !ok {
		s.Fatalf("the condition %s is not one", condition)
	}
	return is
}

// nothing is the value of a property that is left out.
type nothing struct{}

func (s *stackTemplate) value(n *yaml.Node) any {
	switch n.Tag {
	case "!Ref":
		return s.ref(n.Value)
	case "!GetAtt":
		of, name, _ := strings.Cut(n.Value, ".")
		return s.attribute(of, name)
	case "!Condition":
		return s.holds(n.Value)
	case "!Sub":
		return s.sub(n)
	case "!If":
		if s.holds(n.Content[0].Value) {
			return s.value(n.Content[1])
		}
		return s.value(n.Content[2])
	case "!Equals":
		return s.value(n.Content[0]) == s.value(n.Content[1])
	case "!Not":
		return !s.value(n.Content[0]).(bool)
	case "!Join":
		var parts []string
		for _, v := range s.value(n.Content[1]).([]any) {
			parts = append(parts, v.(string))
		}
		return strings.Join(parts, n.Content[0].Value)
	case "!And":
		return s.value(n.Content[0]).(bool) && s.value(n.Content[1]).(bool)
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for name, c := range pairs(n) {
			if v := s.value(c); v != (nothing{}) {
				out[name] = v
			}
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			if v := s.value(c); v != (nothing{}) {
				out = append(out, v)
			}
		}
		return out
	}
	var v any
	if err := n.Decode(&v); err != nil || strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		s.Fatalf("line %d: %s %s: %v", n.Line, n.Tag, n.Value, err)
	}
	return v
}

func (s *stackTemplate) ref(name string) any {
	if name == "AWS::NoValue" {
		return nothing{}
	}
	p, is := s.parameters[name]
	if kind := pairs(pairs(s.sections["Parameters"])[name])["Type"]; is && kind != nil && kind.Value == "CommaDelimitedList" {
		return seq.Map(strings.Split(p, ","), func(part string) any { return part })
	} else if is {
		return p
	}
	return s.attribute(name, "")
}

var placeholder = regexp.MustCompile(`\$\{([^!}]+)\}`)

func (s *stackTemplate) sub(n *yaml.Node) string {
	text, own := n.Value, map[string]*yaml.Node{}
	if n.Kind == yaml.SequenceNode {
		text, own = n.Content[0].Value, pairs(n.Content[1])
	}
	return placeholder.ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-1]
		if v, is := own[name]; is {
			return fmt.Sprint(s.value(v))
		}
		if of, attribute, dotted := strings.Cut(name, "."); dotted {
			return s.attribute(of, attribute)
		}
		return fmt.Sprint(s.ref(name))
	})
}

// statement is one of a policy.
type statement struct {
	Sid, Effect      string
	Action, Resource []string
	Condition        map[string]map[string]any
	used             map[string]bool // actions
}

func (s *stackTemplate) statements(role string) (out []*statement) {
	r, is := s.resources("AWS::IAM::Role")[role]
	if !is {
		s.Fatalf("there is no role %s", role)
	}
	text, err := json.Marshal(r.Properties["Policies"])
	failtest.On(s, err)
	var policies []struct {
		PolicyDocument struct{ Statement []*statement }
	}
	failtest.On(s, json.Unmarshal(text, &policies))
	for _, p := range policies {
		for _, st := range p.PolicyDocument.Statement {
			st.used = map[string]bool{}
			out = append(out, st)
		}
	}
	return out
}

// allowed notes the statement that allows an action on a resource, and reports whether there
// is one.
func allowed(all []*statement, action, arn string) (is bool) {
	for _, s := range all {
		for _, a := range s.Action {
			if s.Effect == "Deny" { // of some rows
				continue
			}
			for _, r := range s.Resource {
				if a == action && matches(r, arn) {
					s.used[a], is = true, true
				}
			}
		}
	}
	return is
}

// matches reports whether a resource of a policy, with stars, is this one.
func matches(pattern, arn string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(arn)
}

// mayWrite reports whether a policy allows an action on a row of a table, as IAM evaluates conditions of dynamodb:LeadingKeys.
func mayWrite(all []*statement, action, arn, key string) (is bool) {
	for _, s := range all {
		if !slices.Contains(s.Action, action) || !slices.ContainsFunc(s.Resource, func(r string) bool { return matches(r, arn) }) {
			continue
		}
		holds := true
		for operator, of := range s.Condition {
			values, ok := of["dynamodb:LeadingKeys"].([]any)
			one := slices.ContainsFunc(values, func(v any) bool { return matches(v.(string), key) })
			switch operator { // a call names one key, so any and all are the same
			case "ForAnyValue:StringLike", "ForAllValues:StringEquals":
				holds = holds && ok && one
			case "ForAnyValue:StringNotEquals":
				holds = holds && ok && !one
			default:
				holds = false
			}
		}
		switch {
		case holds && s.Effect == "Deny":
			return false
		case holds:
			is = true
		}
	}
	return is
}

// TestRolesClaimTheirTables: each role may write the rows of its own table that say to which stage and model tables belong
// for its model's tables alone, in every stage, and all other rows of its own table.
func TestRolesClaimTheirTables(t *testing.T) {
	m, err := model.Load("wardrobe")
	failtest.On(t, err)
	plan, err := deploy.Of([]*model.Model{m})
	failtest.On(t, err)
	text, err := plan.CloudFormation()
	failtest.On(t, err)
	for _, stage := range []string{"default", "prod"} {
		s := readTemplate(t, []byte(text), map[string]string{"Stage": stage, "CodeBucket": "b", "Release": "r1", "Queries": "true", "OpenSearchUrl": "https://search.example", "OpenSearchDomainArn": "arn:aws:es:eu-west-1:" + testAccount + ":domain/d"})
		s.attribute = func(resource, name string) string { return path.Join("of", resource, name) }
		real := ""
		for name, v := range s.parameters {
			if strings.HasSuffix(name, "TableName") {
				real = v
			}
		}
		table := "arn:aws:dynamodb:" + testRegion + ":" + testAccount + ":table/"
		own := table + map[string]string{"default": "weir", "prod": "weir-prod"}[stage]
		roles := 0
		for role := range s.resources("AWS::IAM::Role") {
			roles++
			all := s.statements(role)
			if strings.HasSuffix(role, "QueryRole") {
				readsOnly(t, role, all, own, table)
				continue
			}
			for _, c := range []struct {
				arn, key string
				may      bool
			}{
				{table + "weir", "stage|" + real, true}, {table + "weir", "stage|other", false}, {table + "weir", "stage|" + real + "2", false},
				{own, "stage|" + real, true}, {own, "stage|other", false}, {own, "ledger|wardrobe|x", true}, {table + "weir", "ledger|wardrobe|x", stage == "default"},
			} {
				if got := mayWrite(all, "dynamodb:UpdateItem", c.arn, c.key); got != c.may {
					t.Errorf("stage %s, %s: writes %q of %s: %v", stage, role, c.key, c.arn, got)
				}
			}
			for _, action := range []string{"dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"} {
				if mayWrite(all, action, own, "stage|other") || mayWrite(all, action, table+"weir", "stage|other") {
					t.Errorf("stage %s, %s may %s rows of other tables", stage, role, action)
				}
			}
		}
		if roles < 2 {
			t.Errorf("%d roles", roles)
		}
	}
}

// TestTemplateReachesOpenSearch: subnets and the secret with the password are in every function that needs them if they are
// given, its role may use exactly these, and no password is in an environment.
func TestTemplateReachesOpenSearch(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	plan, err := deploy.Of([]*model.Model{m})
	failtest.On(t, err)
	text, err := plan.CloudFormation()
	failtest.On(t, err)
	const secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:search-AbCdEf"
	const key = "arn:aws:kms:eu-west-1:123456789012:key/k"
	for _, given := range []bool{false, true} {
		parameters := map[string]string{"CodeBucket": "b", "Release": "r1", "Queries": "true", "OpenSearchUrl": "https://weir@search.example"}
		if given {
			parameters["SubnetIds"], parameters["SecurityGroupIds"], parameters["OpenSearchSecretArn"] = "subnet-1a,subnet-2b", "sg-3c", secret
			parameters["DataKeyArn"] = key
		}
		s := readTemplate(t, text, parameters)
		s.attribute = func(resource, name string) string { return path.Join("of", resource, name) }
		for name, f := range s.resources("AWS::Lambda::Function") {
			config, err := json.Marshal(f.Properties["VpcConfig"])
			failtest.On(t, err)
			env := f.Properties["Environment"].(map[string]any)["Variables"].(map[string]any)
			wantConfig, wantURL := "null", "https://weir@search.example"
			if given {
				wantConfig, wantURL = `{"SecurityGroupIds":["sg-3c"],"SubnetIds":["subnet-1a","subnet-2b"]}`, "https://weir@search.example?secret="+secret
			}
			searches := !strings.HasSuffix(name, "Ingest")
			if url, has := env["WEIR_OPENSEARCH"]; string(config) != wantConfig || has != searches || has && url != wantURL {
				t.Errorf("%s: %s, %v", name, config, env)
			}
			all := s.statements(name + "Role")
			if is := f.Properties["KmsKeyArn"]; given != (is == key) {
				t.Errorf("the environment of %s has the key %v", name, is)
			}
			for _, st := range all {
				if slices.Contains(st.Action, "kms:CreateGrant") && (len(st.Action) != 1 || st.Condition["Bool"]["kms:GrantIsForAWSResource"] != true) {
					t.Errorf("%s may make any grant: %+v", name, st)
				}
			}
			for action, resource := range map[string]string{"secretsmanager:GetSecretValue": secret, "ec2:CreateNetworkInterface": "*"} {
				may := slices.ContainsFunc(all, func(s *statement) bool {
					return slices.Contains(s.Action, action) && slices.Equal(s.Resource, []string{resource})
				})
				if want := given && (searches || resource == "*"); may != want {
					t.Errorf("%s may %s: %v", name, action, may)
				}
			}
		}
	}
	for name, r := range readTemplate(t, text, map[string]string{"CodeBucket": "b", "Release": "r1", "OpenSearchUrl": "https://a"}).resources("AWS::DynamoDB::Table") {
		if r.Properties["DeletionProtectionEnabled"] != true {
			t.Errorf("%s can be deleted", name)
		}
	}
	for url, ok := range map[string]bool{
		"https://weir@search.example": true, "https://search.example:9200/path": true, "https://search.example?sign=eu-west-1": true,
		"https://weir:secret@search.example": false, "https://search.example?secret=x": false, "search.example": false,
	} {
		pattern := pairs(pairs(readTemplate(t, text, map[string]string{"CodeBucket": "b", "Release": "r1", "OpenSearchUrl": "https://a"}).sections["Parameters"])["OpenSearchUrl"])["AllowedPattern"].Value
		if regexp.MustCompile(pattern).MatchString(url) != ok {
			t.Errorf("%s: %v", url, !ok)
		}
	}
}

// TestTemplateReleases: each function has a version that stays, and an alias to which all events and requests go. The name of a
// release is in the function and in its version, so that another one publishes a version. Gradual shifts are CodeDeploy's.
func TestTemplateReleases(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	plan, err := deploy.Of([]*model.Model{m})
	failtest.On(t, err)
	text, err := plan.CloudFormation()
	failtest.On(t, err)
	for _, c := range []struct {
		shift, queries string
		groups         int
	}{{"AllAtOnce", "true", 0}, {"Canary10Percent5Minutes", "true", 3}, {"Linear10PercentEvery1Minute", "false", 2}} {
		s := readTemplate(t, text, map[string]string{"CodeBucket": "b", "Release": "r7", "OpenSearchUrl": "https://a", "Queries": c.queries, "Shift": c.shift, "ProjectorCodeVersion": "v3"})
		s.attribute = func(resource, name string) string { return path.Join("of", resource, name) }
		functions := s.resources("AWS::Lambda::Function")
		for name, f := range functions {
			version, alias := s.resources("AWS::Lambda::Version")[name+"Version"].Properties, s.resources("AWS::Lambda::Alias")[name+"Live"].Properties
			if version["Description"] != "r7" || !strings.HasSuffix(fmt.Sprint(f.Properties["Description"]), " r7") ||
				alias["FunctionVersion"] != "of/"+name+"Version/Version" || alias["Name"] != "live" || version["FunctionName"] != "of/"+name {
				t.Errorf("%s: %v, %v, %v", name, f.Properties["Description"], version, alias)
			}
			of := pairs(pairs(s.sections["Resources"])[name+"Version"])
			if of["UpdateReplacePolicy"] == nil || of["UpdateReplacePolicy"].Value != "Retain" {
				t.Errorf("an earlier version of %s is deleted", name)
			}
			object := f.Properties["Code"].(map[string]any)["S3ObjectVersion"]
			if ingest := strings.HasSuffix(name, "Ingest"); ingest != (object == nil) || !ingest && object != "v3" {
				t.Errorf("%s has the code %v", name, f.Properties["Code"])
			}
			policy := s.value(pairs(pairs(s.sections["Resources"])[name+"Live"])["UpdatePolicy"])
			if _, is := policy.(map[string]any); is != (c.groups > 0) {
				t.Errorf("%s shifts %s: %v", name, c.shift, policy)
			}
		}
		for kind, property := range map[string]string{"AWS::Lambda::EventSourceMapping": "FunctionName", "AWS::Lambda::Permission": "FunctionName", "AWS::Events::Rule": "Targets"} {
			for name, r := range s.resources(kind) {
				if to := fmt.Sprint(r.Properties[property]); !strings.Contains(to, "Live") {
					t.Errorf("%s goes past the alias, to %s", name, to)
				}
			}
		}
		for name, r := range s.resources("AWS::Lambda::Url") {
			if r.Properties["Qualifier"] != "live" {
				t.Errorf("%s goes past the alias", name)
			}
		}
		groups := s.resources("AWS::CodeDeploy::DeploymentGroup")
		for name, g := range groups {
			if g.Properties["DeploymentConfigName"] != "CodeDeployDefault.Lambda"+c.shift {
				t.Errorf("%s: %v", name, g.Properties)
			}
		}
		if len(groups) != c.groups || len(s.resources("AWS::CodeDeploy::Application")) != min(c.groups, 1) {
			t.Errorf("%s: %d groups", c.shift, len(groups))
		}
	}
}

// readsOnly checks that a role writes nothing but the secret of cursors, in its own table alone.
func readsOnly(t *testing.T, role string, all []*statement, own, tables string) {
	t.Helper()
	for _, s := range all {
		for _, a := range s.Action {
			_, does, _ := strings.Cut(a, ":")
			reads := strings.HasPrefix(a, "kms:") || strings.HasPrefix(a, "logs:") ||
				slices.Contains([]string{"BatchGetItem", "DescribeTable", "Query", "ESHttpGet", "ESHttpHead", "ESHttpPost"}, does)
			if s.Effect == "Allow" && !reads && (a != "dynamodb:PutItem" || s.Sid != "CursorSecret") {
				t.Errorf("%s may %s", role, a)
			}
		}
	}
	for key, may := range map[string]bool{"secret": true, "ledger|wardrobe|x": false, "stage|other": false} {
		if got := mayWrite(all, "dynamodb:PutItem", own, key); got != may {
			t.Errorf("%s writes %q: %v", role, key, got)
		}
	}
	if mayWrite(all, "dynamodb:PutItem", tables+"other", "secret") {
		t.Errorf("%s writes other tables", role)
	}
}

// TestReadTemplate: what the tests rely on when they read templates.
func TestReadTemplate(t *testing.T) {
	s := readTemplate(t, []byte(`
Parameters: {A: {Default: x}, B: {}}
Conditions: {IsX: !Equals [!Ref A, x], Both: !And [!Condition IsX, !Not [!Equals [!Ref B, b]]]}
Resources:
  One: {Type: T, Condition: Both}
  Two: {Type: T, Properties: {P: !If [IsX, !Sub 'a${A}${!B}${Two.Arn}', n], Q: !If [Both, 1, !Ref 'AWS::NoValue'], R: [!Ref B, 7], S: !Sub ['${M}-${A}', {M: !Ref Two}]}}
`), map[string]string{"B": "b"})
	s.attribute = func(resource, name string) string { return path.Join("of", resource, name) }
	all := s.resources("T")
	text, err := json.Marshal(all["Two"].Properties)
	if want := `{"P":"ax${!B}of/Two/Arn","R":["b",7],"S":"of/Two-x"}`; err != nil || len(all) != 1 || string(text) != want {
		t.Errorf("%v: %s, should be %s", all, text, want)
	}
	st := []*statement{{Action: []string{"d:Get"}, Resource: []string{"arn:t/a/stream/*"}, used: map[string]bool{}}}
	if allowed(st, "d:Get", "arn:t/a") || allowed(st, "d:Put", "arn:t/a/stream/1") || len(st[0].used) > 0 || !allowed(st, "d:Get", "arn:t/a/stream/1") || !st[0].used["d:Get"] {
		t.Error(st[0])
	}
}
