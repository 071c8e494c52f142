{{- /* What goes into ConfigMaps and volumes. */ -}}

{{- define "kvguard.slo.data" -}}
slo.yaml: |
  {{- toYaml .Values.slo | nindent 2 }}
{{- with .Values.baseline }}
baseline.json: |
  {{- . | nindent 2 }}
{{- end }}
{{- with .Values.modelConfig }}
config.json: |
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kvguard.logWay.data" -}}
{{- $bytes := mul .Values.log.maxMiB 1048576 | toString -}}
kvguard-tee: |
  {{- .Files.Get "kustomize/tee/kvguard-tee" | nindent 2 }}
logging.json: |
  {{- .Files.Get "kustomize/logging/logging.json" | replace "16777216" $bytes | nindent 2 }}
{{- end }}

{{- /* Over its limit a volume gets its pod evicted: the limit is above what the bounded copies can reach. */ -}}
{{- define "kvguard.log.sizeLimit" -}}
{{- mul .Values.log.maxMiB (ternary 3 8 (eq .Values.log.from "tee")) }}Mi
{{- end }}
