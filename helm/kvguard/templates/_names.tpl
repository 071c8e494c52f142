{{- /* Names and labels. */ -}}

{{- define "kvguard.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* The stable ones: fit for selectors. */ -}}
{{- define "kvguard.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kvguard.labels" -}}
{{ include "kvguard.selectorLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | quote }}
app.kubernetes.io/part-of: kvguard
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Nothing that a new version of this chart changes: pods must not restart for it. */ -}}
{{- define "kvguard.podLabels" -}}
{{ include "kvguard.selectorLabels" . }}
app.kubernetes.io/part-of: kvguard
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The pods that the guard's Service, monitors and policies speak of. */ -}}
{{- define "kvguard.podSelector" -}}
{{- if eq .Values.mode "beside" }}
{{- required "beside.podSelector: the labels of the pods that carry the sidecar" .Values.beside.podSelector | toYaml }}
{{- else }}
{{- include "kvguard.selectorLabels" . }}
app.kubernetes.io/component: {{ ternary "vllm" "guard" (eq .Values.mode "standalone") }}
{{- end }}
{{- end }}

{{- /* Beside somebody else's vLLM the account is theirs. */ -}}
{{- define "kvguard.serviceAccountName" -}}
{{- if and .Values.serviceAccount.create (ne .Values.mode "beside") }}
{{- default (include "kvguard.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* The guard of a pod in mode outside: {root, pod}. Long names of pods differ at their ends. */ -}}
{{- define "kvguard.outsideName" -}}
{{- $name := printf "%s-%s" (include "kvguard.fullname" .root) .pod }}
{{- if gt (len $name) 63 }}
{{- $name = printf "%s-%s" ($name | trunc 54 | trimSuffix "-") (.pod | sha256sum | trunc 8) }}
{{- end }}
{{- $name }}
{{- end }}

{{- /* An image's reference from {repository, tag, digest}. */ -}}
{{- define "kvguard.reference" -}}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository .tag }}
{{- end }}
{{- end }}

{{- define "kvguard.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- include "kvguard.reference" (dict "repository" .Values.image.repository "tag" $tag "digest" .Values.image.digest) }}
{{- end }}
